//! What Slipway publishes as an identity provider.

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use super::Api;

const BASE: &str = "/ng/api/oidc/account/acme/.well-known";

async fn public(api: &Api, path: &str) -> (u16, Value) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = api.send(request).await;
    let json = serde_json::from_str(&answer.text).unwrap_or_default();
    (answer.status.as_u16(), json)
}

#[tokio::test(start_paused = true)]
async fn keys_and_their_address_are_published_to_everybody() {
    let api = Api::new().await;
    let (status, configuration) = public(&api, &format!("{BASE}/openid-configuration")).await;
    assert_eq!(status, 200);
    let issuer = "https://slipway.example.com/ng/api/oidc/account/acme";
    assert_eq!(configuration["issuer"], issuer);
    assert_eq!(
        configuration["jwks_uri"],
        format!("{issuer}/.well-known/jwks")
    );

    let (status, keys) = public(&api, &format!("{BASE}/jwks")).await;
    assert_eq!(status, 200);
    let key = &keys["keys"][0];
    assert_eq!(
        (&key["kty"], &key["alg"], &key["use"]),
        (&"RSA".into(), &"RS256".into(), &"sig".into())
    );
    let members: Vec<&String> = key.as_object().expect("a key").keys().collect();
    assert_eq!(
        members,
        ["kty", "use", "alg", "kid", "n", "e"],
        "and no private part"
    );
    assert_eq!(
        public(&api, &format!("{BASE}/jwks")).await.1,
        keys,
        "the key is made once"
    );
}

#[tokio::test(start_paused = true)]
async fn accounts_cannot_be_guessed_and_what_is_none_is_not_found() {
    let api = Api::new().await;
    let keys = public(&api, &format!("{BASE}/jwks")).await;
    let of_nobody = "/ng/api/oidc/account/nobody/.well-known/jwks";
    assert_eq!(public(&api, of_nobody).await, keys);
    let long = "a".repeat(129);
    for account in ["a%2Fb", "%20", "a%22b", &long] {
        let path = format!("/ng/api/oidc/account/{account}/.well-known/openid-configuration");
        assert_eq!(public(&api, &path).await.0, 404, "{account}");
    }
}
