//! What a process costs, as Linux tells it.

use std::io;
use std::path::PathBuf;

/// Resident memory of a process, in MiB.
///
/// # Errors
/// When there is no such process.
pub fn resident(pid: u32) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kib| kib.parse::<f64>().ok());
    kib.map(|kib| kib / 1_024.0)
        .ok_or_else(|| io::Error::other("no VmRSS"))
}

/// Processor time of a process so far, in seconds.
///
/// # Errors
/// When there is no such process.
pub fn cpu(pid: u32) -> io::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the process may hold spaces; what follows its bracket is numbers. Ticks are hundredths of a second.
    let (_, numbers) = stat.rsplit_once(')').unwrap_or_default();
    let ticks = numbers
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<f64>);
    let ticks = ticks.sum::<Result<f64, _>>().map_err(io::Error::other)?;
    Ok(ticks / 100.0)
}

/// Where benchmarks keep their data: in memory where the machine has a place for that, and on its disk. The second is below
/// the target folder, so that one that is killed leaves nothing in the checkout.
pub fn places() -> [(&'static str, PathBuf); 2] {
    let disk = std::env::current_exe().unwrap_or_default();
    let disk = disk.parent().map(PathBuf::from).unwrap_or_default();
    [("tmpfs", PathBuf::from("/dev/shm")), ("disk", disk)]
}
