//! Posts requests over some connections at once, each as soon as the one before it is answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;

/// Connections at once.
const CONNECTIONS: usize = 16;

/// No block sends for longer: what is slow on a disk is measured by fewer requests.
const LONGEST: Duration = Duration::from_secs(3);

/// What one block took.
pub(crate) struct Block {
    pub(crate) per_second: f64,
    /// Of each request, in milliseconds.
    pub(crate) times: Vec<f64>,
}

/// Posts the requests, or as many of them as there is time for; each must be answered with this status.
pub(crate) async fn load(
    at: SocketAddr,
    requests: Vec<Vec<u8>>,
    status: u16,
) -> Result<Block, Failure> {
    let count = CONNECTIONS.min(requests.len());
    let mut parts: Vec<Vec<Vec<u8>>> = (0..count).map(|_| Vec::new()).collect();
    for (number, request) in requests.into_iter().enumerate() {
        let part = number % parts.len();
        parts[part].push(request);
    }
    let began = Instant::now();
    let posting: Vec<_> = parts
        .into_iter()
        .map(|part| tokio::spawn(post(at, part, status, began + LONGEST)))
        .collect();
    let mut times = Vec::new();
    for part in posting {
        times.extend(part.await??);
    }
    Ok(Block {
        per_second: times.len() as f64 / began.elapsed().as_secs_f64(),
        times,
    })
}

async fn post(
    at: SocketAddr,
    requests: Vec<Vec<u8>>,
    status: u16,
    until: Instant,
) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::with_capacity(requests.len());
    let mut open: Option<TcpStream> = None;
    for request in requests {
        let began = Instant::now();
        if began >= until {
            break;
        }
        let mut stream = match open.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(at).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        stream.write_all(&request).await?;
        let answer = answer(&mut stream).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        let found = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        if found != Some(status) {
            return Err(format!("{status} was expected: {head}").into());
        }
        if !head.contains("connection: close") {
            open = Some(stream);
        }
    }
    Ok(times)
}

/// A whole answer: its head, and a body of the length that it says.
async fn answer(stream: &mut TcpStream) -> Result<Vec<u8>, Failure> {
    let mut read = Vec::with_capacity(1_024);
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Err("the server hung up".into());
        }
        let Some(end) = read.windows(4).position(|part| part == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(Ok(0), |text| text.trim().parse())?;
        if read.len() >= end + 4 + length {
            return Ok(read);
        }
    }
}
