//! The code of an earlier version, put back: AWS has no call for that, so it is sent again.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::ROLLBACK;
use super::calls::{self, Changed};
use super::function::{refused, vanished};
use super::manifest::short;
use super::site::Site;
use super::snapshot::Before;
use crate::context::StepContext;

/// Largest package that a request can carry, bytes (Lambda quotas, developer guide).
const LARGEST: usize = 50 << 20;
/// Longest time that a download may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the code of `$LATEST` what it is in `version`: of an image by its digest; of a package from the object that
/// it came from, if that is still the same, and otherwise from Lambda's own copy.
pub(super) async fn restore(
    cx: &mut StepContext<'_>,
    site: &Site,
    name: &str,
    (version, before): (&str, &Before),
) -> Result<Changed, Failure> {
    let Some(was) = calls::get(site, name, Some(version)).await? else {
        return Err(vanished(site, &format!("{name}:{version}")));
    };
    let architectures = &was["Configuration"]["Architectures"];
    let code = &was["Code"];
    if let Some(image) = code["ResolvedImageUri"].as_str() {
        let body = json!({"ImageUri": image, "Architectures": architectures});
        return calls::update_code(site, name, &body).await;
    }
    if let Some(source) = &before.source {
        let mut body = source.clone();
        body["Architectures"] = architectures.clone();
        if unchanged(site, name, (&body, &before.sha256)).await? {
            return calls::update_code(site, name, &body).await;
        }
        cx.warn(
            ROLLBACK,
            "The package in S3 is no longer the one that was deployed: Lambda's own copy is taken",
        );
    }
    let place = code["Location"].as_str().unwrap_or_default();
    let package = download(place).await.map_err(|why| Failure {
        error: ErrorType::Connectivity,
        message: format!(
            "Cannot download the code of version {version} of function {} in {site} from Lambda: {why}. Deploy the version \
             before again.",
            short(name)
        ),
        left_behind: None,
    })?;
    if package.len() > LARGEST {
        return Err(refused(format!(
            "The code of version {version} of function {} in {site} has {} bytes, and no more than {LARGEST} can be sent \
             back: deploy the version before again.",
            short(name),
            package.len()
        )));
    }
    calls::upload_code(site, name, (package, architectures)).await
}

/// Whether the object of `body` still has this digest. What cannot be told is not so.
///
/// # Errors
/// Where AWS did not look: that says nothing of the object.
async fn unchanged(
    site: &Site,
    name: &str,
    (body, sha256): (&Value, &str),
) -> Result<bool, Failure> {
    let mut dry = body.clone();
    dry["DryRun"] = json!(true);
    match calls::update_code(site, name, &dry).await {
        Ok(Changed::Done(answer)) => Ok(answer["CodeSha256"] == sha256),
        Ok(Changed::Busy | Changed::Moved | Changed::NotSo(_)) => Ok(false),
        Err(failure) => match failure.error {
            ErrorType::Authentication | ErrorType::Connectivity | ErrorType::Timeout => {
                Err(failure)
            }
            _ => Ok(false),
        },
    }
}

/// What is at a place that Lambda gave. The place is as good as a password and is never told.
async fn download(place: &str) -> Result<Vec<u8>, String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .build()
        .map_err(told)?;
    let answer = client.get(place).send().await.map_err(told)?;
    let mut answer = answer.error_for_status().map_err(told)?;
    let mut package = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(told)? {
        package.extend_from_slice(&chunk);
        if package.len() > LARGEST {
            break;
        }
    }
    Ok(package)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Answers one request with this.
    async fn serve(answer: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut request = [0; 1024];
            let _read = stream.read(&mut request).await;
            let _written = stream.write_all(answer.as_bytes()).await;
        });
        format!("http://{address}/code?signature=hidden")
    }

    #[tokio::test]
    async fn a_package_is_downloaded_and_its_place_is_not_told() {
        let place = serve("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nPK123").await;
        assert_eq!(download(&place).await, Ok(b"PK123".to_vec()));
        let place = serve("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
        let why = download(&place).await.expect_err("refused");
        assert!(why.contains("403") && !why.contains("hidden"), "{why}");
        assert!(download("no place").await.is_err());
    }
}
