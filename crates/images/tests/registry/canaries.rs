//! Secrets that would sing: in no error, in no debugging text, and at nobody's but those that they are for.

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::StreamExt;
use serde_json::json;
use windlass_images::{
    Digest,
    registry::{Credentials, RegistryError},
};

use crate::world::{HOST, Heard, Piece, Reply, World, location, reference, run, served};

const PASSWORD: &str = "canary-password-7f3a";
const IDENTITY: &str = "canary-identity-91cc";
const TOKEN: &str = "canary-token-e02b";

fn canaries() -> [String; 4] {
    [PASSWORD.into(), IDENTITY.into(), TOKEN.into(), BASE64_STANDARD.encode(format!("canary-user:{PASSWORD}"))]
}

fn by_password() -> Credentials {
    let mut credentials = Credentials::none();
    let config = json!({"auths": {HOST: {"username": "canary-user", "password": PASSWORD}}});
    credentials.add_config(config.to_string().as_bytes()).unwrap();
    credentials
}

fn by_identity() -> Credentials {
    let mut credentials = Credentials::none();
    let config = json!({"auths": {HOST: {"identitytoken": IDENTITY}}});
    credentials.add_config(config.to_string().as_bytes()).unwrap();
    credentials
}

/// Says everything back that it was told, wherever an answer has room for it.
fn echo(heard: &Heard, status: u16) -> Reply {
    let told = heard.text().replace(|c: char| c.is_control(), " ");
    Reply::status(status)
        .with("docker-content-digest", told.clone())
        .with("content-type", told.clone())
        .with("retry-after", told.clone())
        .with("www-authenticate", format!("Basic realm=\"{}\"", told.replace('"', "'")))
        .piece(Piece::Bytes(
            json!({"errors": [{"code": told, "message": told}], "mediaType": told, "schemaVersion": 2})
                .to_string()
                .into(),
        ))
}

/// How a registry behaves once it knows who asks.
type Ending = fn(&Heard) -> Reply;

const ENDINGS: &[Ending] = &[
    |heard| echo(heard, 200),
    |heard| echo(heard, 206),
    |heard| echo(heard, 400),
    |heard| echo(heard, 401),
    |heard| echo(heard, 403),
    |heard| echo(heard, 404),
    |heard| echo(heard, 429),
    |heard| echo(heard, 500),
    |_| served(),
    |_| Reply::Silent,
    |_| Reply::Refusing,
    |_| Reply::redirect("https://storage.test/x"),
    |_| Reply::redirect("https://registry.test:8443/x"),
    |_| Reply::redirect("http://storage.test/x"),
    |_| Reply::redirect("https://metadata.test/x"),
    |_| served().piece(Piece::Cut),
];

/// Everything that a person could get to see of these calls.
fn called(world: &std::sync::Arc<World>, credentials: Credentials) -> String {
    let shown = |error: RegistryError| format!("{error} {error:?} {error:#?} {}\n", error.next_step());
    let mut seen = format!("{credentials:?}\n");
    run(async {
        let registry = world.registry(credentials);
        let place = location("registry.test/a");
        // Twice, so that what was kept is used.
        for _ in 0..2 {
            if let Err(error) = registry.resolve(&reference("registry.test/a:v1")).await {
                seen += &shown(error);
            }
        }
        if let Err(error) = registry.referrers(&place, &Digest::of(b"x"), None).await {
            seen += &shown(error);
        }
        let mut blob = registry.blob(&place, &Digest::of(b"x"), 1000);
        while let Some(piece) = blob.next().await {
            if let Err(error) = piece {
                seen += &shown(error);
                break;
            }
        }
    });
    seen
}

#[test]
fn secrets_are_shown_to_their_registry_and_to_nobody_else() {
    let mut sung = 0;
    for ending in ENDINGS {
        for challenge in ["Basic realm=x", r#"Bearer realm="https://auth.test/token",service=x"#] {
            for credentials in [by_password(), by_identity()] {
                let world = World::new(move |heard| match (heard.host.as_str(), heard.authorization()) {
                    ("auth.test", _) => Reply::json(&json!({"token": TOKEN})),
                    (HOST, None) if heard.port == 443 => Reply::status(401).with("www-authenticate", challenge),
                    (HOST, Some(_)) => ending(heard),
                    (_, _) => echo(heard, 200),
                });
                let seen = called(&world, credentials);
                for canary in canaries() {
                    assert!(!seen.contains(&canary), "{canary} in {seen}");
                    for heard in world.heard() {
                        let sings = heard.text().contains(&canary);
                        sung += usize::from(sings);
                        // A password and an identity token go to the realm, a password and a token to the registry.
                        let is_token = canary == TOKEN;
                        let is_home = heard.host == HOST && heard.port == 443 && canary != IDENTITY;
                        let is_realm = heard.host == "auth.test" && !is_token;
                        assert!(!sings || (heard.tls && (is_home || is_realm)), "{canary} at {}", heard.text());
                    }
                }
            }
        }
    }
    assert!(sung > 100, "the secrets were used: {sung}");
}

#[test]
fn a_realm_that_says_everything_back_is_not_repeated() {
    for status in [200, 400, 401, 403, 500] {
        for credentials in [by_password(), by_identity()] {
            let world = World::new(move |heard| match heard.host.as_str() {
                HOST => Reply::status(401).with("www-authenticate", r#"Bearer realm="https://auth.test/token""#),
                _ => echo(heard, status),
            });
            let seen = called(&world, credentials);
            for canary in canaries() {
                assert!(!seen.contains(&canary), "{canary} in {seen}");
            }
        }
    }
}
