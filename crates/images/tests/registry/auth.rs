//! Who asks: passwords, tokens, and where they are shown.

use std::{sync::Arc, time::Duration};

use rstest::rstest;
use serde_json::json;
use windlass_images::{
    RegistryError,
    registry::{Class, Credentials, Failure, Shown},
};

use crate::world::{Heard, Reply, World, add_login, login, reference, run, served};

/// `me:s3cret`.
const BASIC: &str = "Basic bWU6czNjcmV0";

fn challenged(challenge: &str) -> Reply {
    Reply::status(401).with("www-authenticate", challenge)
}

/// A registry whose tokens are had at `realm`.
fn with_tokens(realm: &'static str, granted: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Arc<World> {
    World::new(move |heard| match (heard.path.starts_with("/token"), heard.authorization()) {
        (true, _) => granted(heard),
        (false, Some("Bearer t0ken")) => served(),
        (false, _) => challenged(&format!(
            r#"Bearer realm="{realm}",service="registry.test",scope="repository:a:pull,push repository:other:*""#
        )),
    })
}

fn mine() -> Credentials {
    login("registry.test", "me", "s3cret")
}

fn ask(world: &Arc<World>, credentials: Credentials) -> Result<(), RegistryError> {
    run(world.registry(credentials).resolve(&reference("registry.test/a:v1"))).map(drop)
}

#[test]
fn a_password_is_shown_when_it_is_asked_for_and_from_then_on() {
    let world = World::new(|heard| match heard.authorization() {
        Some(BASIC) => served(),
        _ => challenged(r#"Basic realm="x""#),
    });
    run(async {
        let registry = world.registry(mine());
        registry.resolve(&reference("registry.test/a:v1")).await.unwrap();
        registry.resolve(&reference("registry.test/a:v2")).await.unwrap();
    });
    let shown: Vec<_> = world.heard().iter().map(|heard| heard.authorization().map(str::to_owned)).collect();
    assert_eq!(shown, [None, Some(BASIC.to_owned()), Some(BASIC.to_owned())]);
}

#[test]
fn a_token_is_fetched_for_reading_alone_and_kept_for_its_lifetime() {
    let world = with_tokens("https://auth.test/token", |_| Reply::json(&json!({"token": "t0ken", "expires_in": 300})));
    run(async {
        let registry = world.registry(mine());
        let ask = async || registry.resolve(&reference("registry.test/a:v1")).await.unwrap();
        ask().await;
        ask().await;
        let fetched = || world.heard().iter().filter(|heard| heard.host == "auth.test").count();
        assert_eq!(fetched(), 1);
        tokio::time::advance(Duration::from_mins(5)).await;
        ask().await;
        assert_eq!(fetched(), 2);
    });
    let realm = world.heard().remove(1);
    assert_eq!(realm.path, "/token?service=registry.test&scope=repository%3Aa%3Apull");
    assert_eq!((realm.authorization(), realm.tls), (Some(BASIC), true));
    // The password went to the realm and nowhere else.
    let home = world.heard().into_iter().filter(|heard| heard.host == "registry.test");
    assert!(home.clone().count() > 3 && home.into_iter().all(|heard| heard.authorization() != Some(BASIC)));
}

#[test]
fn a_token_that_is_no_longer_good_is_fetched_again() {
    let world = World::new(|heard| match (heard.path.as_str(), heard.authorization()) {
        (path, _) if path.starts_with("/token") => Reply::json(&json!({"access_token": "t0ken"})),
        ("/v2/a/manifests/v2", Some("Bearer t0ken")) | (_, None) => {
            challenged(r#"Bearer realm="https://auth.test/token""#)
        }
        (_, Some(_)) => served(),
    });
    run(async {
        let registry = world.registry(Credentials::none());
        registry.resolve(&reference("registry.test/a:v1")).await.unwrap();
        let error = registry.resolve(&reference("registry.test/a:v2")).await.unwrap_err();
        assert_eq!(error.class(), Class::Refused);
    });
    // Without and with a token; with the kept one, then with a new one; and that was all.
    assert_eq!(world.heard().len(), 3 + 3);
}

#[test]
fn a_public_repository_needs_no_secret() {
    let world = with_tokens("https://auth.test/token", |_| Reply::json(&json!({"token": "t0ken"})));
    ask(&world, Credentials::none()).unwrap();
    assert_eq!(world.heard()[1].authorization(), None);
}

#[test]
fn every_secret_that_fits_is_tried() {
    let world = with_tokens("https://auth.test/token", |heard| match heard.authorization() {
        Some(BASIC) => Reply::json(&json!({"token": "t0ken"})),
        _ => Reply::status(401),
    });
    let mut credentials = login("registry.test", "old", "0ld");
    add_login(&mut credentials, "registry.test", "me", "s3cret");
    ask(&world, credentials).unwrap();
}

#[test]
fn an_identity_token_is_exchanged_in_a_form() {
    let world = with_tokens("https://auth.test/token", |_| Reply::json(&json!({"access_token": "t0ken"})));
    let mut credentials = Credentials::none();
    credentials.add_config(br#"{"auths":{"registry.test":{"identitytoken":"r3fresh"}}}"#).unwrap();
    ask(&world, credentials).unwrap();
    let realm = world.heard().remove(1);
    assert_eq!((realm.method.as_str(), realm.path.as_str(), realm.authorization()), ("POST", "/token", None));
    let form = String::from_utf8(realm.body.to_vec()).unwrap();
    assert_eq!(
        form,
        "grant_type=refresh_token&client_id=windlass&service=registry.test&scope=repository%3Aa%3Apull&refresh_token=r3fresh"
    );
}

#[rstest]
#[case::without_tls("http://auth.test/token")]
#[case::its_own_without_tls("http://registry.test/token")]
#[case::metadata("https://metadata.test/token")]
#[case::the_cluster("https://service.test/token")]
#[case::a_private_network("https://private.test/token")]
#[case::this_machine("https://127.0.0.1/token")]
#[case::no_address("token")]
fn a_password_goes_to_no_other_realm(#[case] realm: &'static str) {
    let world = with_tokens(realm, |_| Reply::json(&json!({"token": "t0ken"})));
    assert_eq!(ask(&world, mine()).unwrap_err().class(), Class::Forbidden);
    assert_eq!(world.heard().len(), 1);
}

#[test]
fn a_registry_without_tls_may_hand_out_its_own_tokens() {
    let world = with_tokens("http://plain.test:5000/token", |_| Reply::json(&json!({"token": "t0ken"})));
    let registry = world.registry(login("plain.test:5000", "me", "s3cret"));
    run(registry.resolve(&reference("plain.test:5000/a:v1"))).unwrap();
    assert_eq!(world.heard()[1].authorization(), Some(BASIC));
}

#[rstest]
#[case::elsewhere(Reply::redirect("https://storage.test/token"), Class::Forbidden)]
#[case::at_home(Reply::redirect("/token2"), Class::Forbidden)]
#[case::no_token(Reply::ok("{}"), Class::Corrupt)]
#[case::no_end(Reply::status(200).piece(crate::world::Piece::Endless(vec![b' '; 4096].into())), Class::Corrupt)]
#[case::denied(Reply::status(403), Class::Refused)]
#[case::no_longer_good(Reply::status(400), Class::Refused)]
#[case::busy(Reply::status(429).with("retry-after", "9"), Class::Busy)]
#[case::silent(Reply::Silent, Class::Silent)]
fn a_realm_that_gives_no_token_has_a_class(#[case] reply: Reply, #[case] class: Class) {
    let world = with_tokens("https://auth.test/token", move |_| reply.clone());
    let error = ask(&world, mine()).unwrap_err();
    assert_eq!(error.class(), class, "{error}");
    assert_eq!(world.heard().len(), 2);
    assert!(error.to_string().contains("a token for a at auth.test, for registry.test"), "{error}");
}

#[test]
fn a_registry_that_is_never_content_is_not_asked_for_ever() {
    let world = World::new(|heard| {
        if heard.path.starts_with("/token") {
            Reply::json(&json!({"token": "t0ken"}))
        } else {
            challenged(r#"Bearer realm="https://auth.test/token""#)
        }
    });
    let mut credentials = Credentials::none();
    for number in 0..20 {
        add_login(&mut credentials, "registry.test", "me", &format!("s3cret{number}"));
    }
    let error = ask(&world, credentials).unwrap_err();
    assert!(matches!(error.failure(), Failure::Denied { code: 401, shown: Shown::Password, .. }));
    assert_eq!(world.heard().len(), 1 + 4 * 2);
}

#[rstest]
#[case::no_secret("{}", Shown::Nothing, "add a pull secret")]
#[case::a_secret_for_another_registry(
    r#"{"auths":{"other.test":{"username":"me","password":"x"}}}"#,
    Shown::Nothing,
    "add a pull secret"
)]
#[case::a_plugin(r#"{"credHelpers":{"registry.test":"ecr-login"}}"#, Shown::NothingByPlugin, "credential plugin")]
fn a_registry_that_wants_a_password_that_nobody_has_says_what_to_do(
    #[case] config: &str,
    #[case] expected: Shown,
    #[case] words: &str,
) {
    let world = World::new(|_| challenged("Basic"));
    let mut credentials = Credentials::none();
    credentials.add_config(config.as_bytes()).unwrap();
    let error = ask(&world, credentials).unwrap_err();
    assert!(matches!(error.failure(), Failure::Denied { shown, .. } if *shown == expected), "{error}");
    assert!(error.next_step().contains(words), "{}", error.next_step());
    assert_eq!(world.heard().len(), 1);
}

#[test]
fn a_challenge_that_can_be_read_in_two_ways_is_not_met() {
    let world = World::new(|_| challenged(r#"Bearer realm="https://auth.test/token",realm="https://storage.test/""#));
    assert_eq!(ask(&world, mine()).unwrap_err().class(), Class::Corrupt);
    assert_eq!(world.heard().len(), 1);
}
