//! Signatures and tokens of deliveries, with the vectors of SECURITY 7.3.

use slipway_trigger::signature::{Unauthenticated, is_credential, verify};
use slipway_trigger::{Delivery, Provider};

const SECRET: &str = "It's a Secret to Everybody";
const BODY: &str = "Hello, World!";
const SHA256: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const SHA1: &str = "01dc10d0c83e72ed246219cdd91669667fe2ca59";
const NOW: i64 = 1_614_265_330_000;

fn delivery(headers: &[(&str, &str)], body: &str) -> Delivery {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned()));
    Delivery {
        headers: headers.collect(),
        body: body.as_bytes().to_vec(),
    }
}

fn check(provider: Provider, headers: &[(&str, &str)]) -> Result<(), Unauthenticated> {
    verify(provider, &[SECRET], &delivery(headers, BODY), NOW)
}

#[test]
fn each_provider_has_its_own_way() {
    let signed = format!("sha256={SHA256}");
    let signed = signed.as_str();
    // base64 of `user:It's a Secret to Everybody`.
    let basic = "Basic dXNlcjpJdCdzIGEgU2VjcmV0IHRvIEV2ZXJ5Ym9keQ==";
    let wrong_basic = "Basic dXNlcjpub3Q=";
    type Row<'r> = (Provider, &'r [(&'r str, &'r str)], bool);
    let rows: &[Row] = &[
        (Provider::Github, &[("X-Hub-Signature-256", signed)], true),
        (Provider::Github, &[("X-Hub-Signature-256", SHA256)], false),
        (Provider::Github, &[("X-Gitlab-Token", SECRET)], false),
        (Provider::Github, &[("X-Gitea-Signature", SHA256)], true),
        (Provider::Github, &[("X-Forgejo-Signature", SHA256)], true),
        // A bad signature of Forgejo is not made good by another.
        (
            Provider::Github,
            &[
                ("X-Forgejo-Signature", SHA1),
                ("X-Hub-Signature-256", signed),
            ],
            false,
        ),
        (
            Provider::Github,
            &[
                ("X-Gitea-Signature", SHA256),
                ("X-Hub-Signature-256", "sha256=00"),
            ],
            false,
        ),
        (Provider::Gitlab, &[("X-Gitlab-Token", SECRET)], true),
        (
            Provider::Gitlab,
            &[("X-Gitlab-Token", "it's a secret to everybody")],
            false,
        ),
        (Provider::Gitlab, &[("X-Gitlab-Token", "")], false),
        (Provider::Gitlab, &[("X-Hub-Signature-256", signed)], false),
        (Provider::Bitbucket, &[("X-Hub-Signature", signed)], true),
        (
            Provider::Bitbucket,
            &[("X-Hub-Signature", &format!("sha1={SHA1}"))],
            false,
        ),
        (Provider::AzureRepo, &[("Authorization", basic)], true),
        (
            Provider::AzureRepo,
            &[("Authorization", wrong_basic)],
            false,
        ),
        (Provider::AzureRepo, &[("Authorization", SECRET)], false),
        (Provider::AzureRepo, &[("X-Azure-Token", SECRET)], true),
        (Provider::AzureRepo, &[("X-Azure-Token", "no")], false),
        (
            Provider::AzureRepo,
            &[("X-Azure-Token", SECRET), ("X-My-Secret", "no")],
            false,
        ),
        (Provider::AzureRepo, &[("X-Other", SECRET)], false),
        (Provider::Harness, &[("X-Harness-Signature", SHA256)], true),
        (Provider::Harness, &[("X-Gitness-Signature", SHA256)], true),
        (
            Provider::Harness,
            &[
                ("X-Harness-Signature", SHA1),
                ("X-Gitness-Signature", SHA256),
            ],
            false,
        ),
        (
            Provider::HarnessArtifactRegistry,
            &[("X-Harness-Signature", SHA256)],
            true,
        ),
        (Provider::Custom, &[("X-Hub-Signature-256", signed)], true),
        (Provider::Custom, &[("X-JFrog-Event-Auth", SHA256)], true),
        (Provider::Custom, &[("X-JFrog-Event-Auth", SECRET)], true),
        (Provider::Custom, &[("X-JFrog-Event-Auth", SHA1)], false),
        (
            Provider::Custom,
            &[("X-Nexus-Webhook-Signature", SHA1)],
            true,
        ),
        (
            Provider::Custom,
            &[("X-Nexus-Webhook-Signature", SHA256)],
            false,
        ),
        (
            Provider::Custom,
            &[("Authorization", &format!("Bearer {SECRET}"))],
            true,
        ),
        (Provider::Custom, &[("Authorization", "Bearer no")], false),
        (Provider::Custom, &[("X-Gitlab-Token", SECRET)], true),
        (Provider::Custom, &[("X-Gitea-Signature", SHA256)], true),
        (Provider::Custom, &[("X-Hub-Signature", signed)], true),
        (Provider::Custom, &[("X-Harness-Signature", SHA256)], true),
        // A weaker scheme beside a wrong signature does not help.
        (
            Provider::Custom,
            &[("X-Harness-Signature", SHA1), ("X-Gitlab-Token", SECRET)],
            false,
        ),
        (Provider::Custom, &[("Authorization", SECRET)], true),
        (
            Provider::Custom,
            &[
                ("X-Hub-Signature-256", "sha256=00"),
                ("Authorization", SECRET),
            ],
            false,
        ),
        (
            Provider::AwsCodeCommit,
            &[("X-Hub-Signature-256", signed)],
            false,
        ),
    ];
    for (provider, headers, right) in rows {
        let found = check(*provider, headers);
        assert_eq!(
            found.is_ok(),
            *right,
            "{} {headers:?}: {found:?}",
            provider.name()
        );
    }
}

#[test]
fn w1_a_delivery_without_a_signature_is_refused() {
    for provider in [
        Provider::Github,
        Provider::Gitlab,
        Provider::Bitbucket,
        Provider::AzureRepo,
        Provider::Harness,
        Provider::HarnessArtifactRegistry,
        Provider::Custom,
    ] {
        let found = check(provider, &[("Content-Type", "application/json")]);
        assert!(
            matches!(found, Err(Unauthenticated::Missing(_))),
            "{found:?}"
        );
    }
    // No secret, or an empty one, is not the secret of an empty signature.
    for secrets in [&[] as &[&str], &[""], &["", ""]] {
        let sent = delivery(&[("X-Gitlab-Token", "")], BODY);
        let found = verify(Provider::Gitlab, secrets, &sent, NOW);
        assert_eq!(found, Err(Unauthenticated::NoSecret));
    }
}

#[test]
fn w2_a_right_sha1_is_refused() {
    let sha1 = format!("sha1={SHA1}");
    for provider in [Provider::Github, Provider::Bitbucket, Provider::Custom] {
        assert!(check(provider, &[("X-Hub-Signature", &sha1)]).is_err());
        assert!(check(provider, &[("X-Hub-Signature-256", &sha1)]).is_err());
    }
    // Beside a right SHA-256 it does not matter: GitHub sends both.
    let both = [
        ("X-Hub-Signature", "sha1=00"),
        ("X-Hub-Signature-256", &format!("sha256={SHA256}")),
    ];
    assert_eq!(check(Provider::Github, &both), Ok(()));
}

#[test]
fn w6_a_body_that_was_changed_is_refused() {
    let key = "key";
    let text = "The quick brown fox jumps over the lazy dog";
    let signed = "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
    let headers = [("X-Hub-Signature-256", signed)];
    assert_eq!(
        verify(Provider::Github, &[key], &delivery(&headers, text), NOW),
        Ok(())
    );
    for changed in [format!("{text} "), format!(" {text}"), text.to_lowercase()] {
        let found = verify(Provider::Github, &[key], &delivery(&headers, &changed), NOW);
        assert_eq!(found, Err(Unauthenticated::Wrong("x-hub-signature-256")));
    }
}

#[test]
fn malformed_signatures_are_refused() {
    let long = format!("sha256={}", "0".repeat(1 << 20));
    for sent in [
        "",
        "sha256=",
        "sha256=0",
        "sha256=zz",
        "sha256=é",
        "=",
        "SHA256=00",
        &long,
    ] {
        let found = check(Provider::Github, &[("X-Hub-Signature-256", sent)]);
        assert!(
            matches!(found, Err(Unauthenticated::Malformed(..))),
            "{sent}: {found:?}"
        );
    }
    let right = format!("sha256={SHA256}");
    let twice = [
        ("X-Hub-Signature-256", right.as_str()),
        ("x-hub-signature-256", right.as_str()),
    ];
    let found = check(Provider::Github, &twice);
    assert_eq!(found, Err(Unauthenticated::Doubled("x-hub-signature-256")));
    // Part of a right signature is no signature.
    let part = format!("sha256={}", &SHA256[..62]);
    assert!(check(Provider::Github, &[("X-Hub-Signature-256", &part)]).is_err());
    for sent in [
        "Basic",
        "Basic !!",
        "Basic /w==",
        "Basic dXNlcg==",
        "Bearer dXNlcjpub3Q=",
    ] {
        let found = check(Provider::AzureRepo, &[("Authorization", sent)]);
        assert!(
            matches!(found, Err(Unauthenticated::Malformed(..))),
            "{sent}: {found:?}"
        );
    }
}

#[test]
fn while_a_secret_is_rotated_either_suffices() {
    let sent = delivery(
        &[("X-Hub-Signature-256", &format!("sha256={SHA256}"))],
        BODY,
    );
    assert_eq!(
        verify(Provider::Github, &["new", SECRET], &sent, NOW),
        Ok(())
    );
    assert_eq!(
        verify(Provider::Github, &[SECRET, "new"], &sent, NOW),
        Ok(())
    );
    assert!(verify(Provider::Github, &["new", "newer"], &sent, NOW).is_err());
}

#[test]
fn w29_standard_webhooks_have_a_time_and_may_have_two_signatures() {
    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const RIGHT: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let check = |time: Option<&str>, signature: &str, now: i64| {
        let mut headers = vec![
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-signature", signature),
            // The token of before does not help where there is a signature.
            ("x-gitlab-token", KEY),
        ];
        headers.extend(time.map(|time| ("webhook-timestamp", time)));
        let sent = delivery(&headers, r#"{"test": 2432232314}"#);
        let both = [Provider::Gitlab, Provider::Custom].map(|it| verify(it, &[KEY], &sent, now));
        assert_eq!(both[0], both[1]);
        both[0].clone()
    };
    let time = Some("1614265330");
    assert_eq!(check(time, RIGHT, NOW), Ok(()));
    assert_eq!(check(time, RIGHT, NOW + 300_999), Ok(()));
    assert_eq!(check(time, RIGHT, NOW - 300_000), Ok(()));
    assert_eq!(
        check(time, RIGHT, NOW + 301_000),
        Err(Unauthenticated::Stale)
    );
    assert_eq!(
        check(time, RIGHT, NOW - 301_000),
        Err(Unauthenticated::Stale)
    );
    assert_eq!(check(time, &format!("v1,AAAA {RIGHT}"), NOW), Ok(()));
    assert_eq!(check(time, &format!("v1a,x {RIGHT} v1,AAAA"), NOW), Ok(()));
    assert!(check(time, "v1,AAAA v1,AAAA", NOW).is_err());
    for unread in ["", "v1,", "v2,AAAA", "g0hM9SsE", "v1,!!"] {
        assert!(check(time, unread, NOW).is_err(), "{unread}");
    }
    for time in [
        "",
        "-1614265330",
        "1e9",
        "1614265330.0",
        "99999999999999999999",
        " 1614265330",
    ] {
        let found = check(Some(time), RIGHT, NOW);
        assert!(found.is_err(), "{time}: {found:?}");
    }
    assert_eq!(
        check(None, RIGHT, NOW),
        Err(Unauthenticated::Missing("webhook-timestamp"))
    );
    // A secret that is no base64 is the secret of nobody.
    let headers = [
        ("webhook-id", "a"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", RIGHT),
    ];
    for secret in ["whsec_", "whsec_!!"] {
        assert!(verify(Provider::Custom, &[secret], &delivery(&headers, ""), NOW).is_err());
    }
}

#[test]
fn no_message_has_a_secret_or_a_signature() {
    let sent = "sha256=deadbeef";
    for provider in [
        Provider::Github,
        Provider::Bitbucket,
        Provider::Gitlab,
        Provider::AzureRepo,
    ] {
        let headers = [
            ("x-hub-signature-256", sent),
            ("x-hub-signature", sent),
            ("x-gitlab-token", "deadbeef"),
        ];
        let why = check(provider, &headers).unwrap_err();
        let told = format!("{why} {why:?}");
        assert!(
            !told.contains("deadbeef") && !told.contains(SECRET),
            "{told}"
        );
    }
    for name in [
        "Authorization",
        "X-Hub-Signature",
        "X-Gitlab-Token",
        "Cookie",
        "X-Api-Key",
        "webhook-signature",
    ] {
        assert!(is_credential(name), "{name}");
    }
    assert!(!is_credential("X-GitHub-Event"));
}
