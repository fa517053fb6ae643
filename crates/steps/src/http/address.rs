//! Where a request may go. Everything that a person may reach, but not the addresses of link-local
//! networks: there the cloud's metadata services give away the credentials of the function itself.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// AWS's metadata service over IPv6 (docs: EC2 user guide, "Access instance metadata").
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The metadata service of ECS tasks is link-local too (169.254.170.2), and so is that of EKS pods.
fn forbidden(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6 == METADATA_V6,
    }
}

/// The text as a URL that may be asked. The message never repeats the URL: it may hold a secret.
pub fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| format!("it is no URL ({error})"))?;
    check(&url)?;
    Ok(url)
}

/// Whether a URL may be asked, as far as it can be told without resolving its name.
pub fn check(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "`{}` is not supported; use http or https",
            url.scheme()
        ));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(address) if forbidden(address) => Err(refusal()),
        _ => Ok(()),
    }
}

fn refusal() -> String {
    "its address is link-local, where metadata services hold credentials; it is never asked"
        .to_owned()
}

/// The system's resolver without forbidden addresses: what was checked is what is connected to, so a name
/// that changes between two look-ups (DNS rebinding) gains nothing.
pub struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|a| !forbidden(a.ip())).collect();
            if allowed.is_empty() {
                return Err(refusal().into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_refused_however_they_are_written() {
        let refused = [
            "http://169.254.169.254/latest/meta-data/",
            "http://169.254.170.2/v2/credentials",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "file:///etc/passwd",
            "gopher://x/",
            "no url",
        ];
        for text in refused {
            assert!(url(text).is_err(), "{text}");
        }
        for text in [
            "https://example.com/a?b",
            "http://127.0.0.1:8080/",
            "http://10.0.0.8/",
        ] {
            assert!(url(text).is_ok(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_resolver_answers_with_allowed_addresses_only() {
        let name: Name = "localhost".parse().expect("a name");
        let addresses = Resolver
            .resolve(name)
            .await
            .expect("addresses of this machine");
        assert!(
            addresses
                .into_iter()
                .all(|address| !forbidden(address.ip()))
        );
    }
}
