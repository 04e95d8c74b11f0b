//! Tags, digests, and answers that are none.

use std::time::Duration;

use bytes::Bytes;
use rstest::rstest;
use windlass_images::{
    Digest,
    document::DOCUMENT_LIMIT,
    registry::{Class, Credentials, Failure},
};

use crate::world::{HOST, Piece, Reply, World, location, manifest, reference, run, served};

#[test]
fn a_tag_is_the_digest_of_the_bytes_that_came() {
    let world = World::new(|_| served());
    let fetched = run(world.registry(Credentials::none()).resolve(&reference("registry.test/a/b:v1"))).unwrap();
    assert_eq!(fetched.digest, Digest::of(manifest().as_bytes()));
    assert_eq!(fetched.bytes, manifest());
    assert!(fetched.document.manifest().is_some());
    let heard = world.heard().remove(0);
    assert_eq!((heard.path.as_str(), heard.port, heard.tls), ("/v2/a/b/manifests/v1", 443, true));
    assert_eq!((heard.header("host"), heard.authorization()), (Some(HOST), None));
    assert!(heard.header("accept").unwrap().contains("image.index"));
}

#[rstest]
#[case::the_hub("pd", "registry-1.docker.io/v2/library/pd/manifests/latest", true)]
#[case::a_registry_without_tls("plain.test:5000/a:v1", "plain.test/v2/a/manifests/v1", false)]
fn a_reference_is_asked_for_where_it_is_kept(#[case] image: &str, #[case] asked: &str, #[case] tls: bool) {
    let world = World::new(|_| served());
    run(world.registry(Credentials::none()).resolve(&reference(image))).unwrap();
    assert_eq!(world.asked(), [asked]);
    assert_eq!(world.heard()[0].tls, tls);
}

#[test]
fn a_digest_decides_and_the_tag_beside_it_is_a_remark() {
    let digest = Digest::of(manifest().as_bytes());
    let world = World::new(|_| served());
    let pinned = reference("registry.test/a:v1").pinned(&digest);
    assert_eq!(run(world.registry(Credentials::none()).resolve(&pinned)).unwrap().digest, digest);
    assert_eq!(world.asked(), [format!("registry.test/v2/a/manifests/{digest}")]);
}

#[test]
fn other_bytes_than_those_that_were_asked_for_are_refused() {
    let world = World::new(|_| served());
    let other = Digest::of(b"other");
    let error = run(world.registry(Credentials::none()).manifest(&location("registry.test/a"), &other)).unwrap_err();
    assert_eq!(error.class(), Class::Corrupt);
    assert!(matches!(error.failure(), Failure::Wrong(mismatch) if mismatch.wanted == other));
}

#[rstest]
#[case::the_same(Digest::of(manifest().as_bytes()).to_string(), None)]
#[case::another(Digest::of(b"other").to_string(), Some(Class::Corrupt))]
#[case::none("x".to_owned(), Some(Class::Corrupt))]
fn what_a_registry_says_of_the_bytes_must_be_true(#[case] told: String, #[case] expected: Option<Class>) {
    let world = World::new(move |_| served().with("docker-content-digest", told.clone()));
    let result = run(world.registry(Credentials::none()).resolve(&reference("registry.test/a:v1")));
    assert_eq!(result.err().map(|error| error.class()), expected);
}

#[rstest]
#[case::gone(Reply::status(404), Class::Missing, None)]
#[case::denied(Reply::status(403), Class::Refused, None)]
#[case::asked_who(Reply::status(401), Class::Refused, None)]
#[case::busy(Reply::status(429).with("retry-after", "7"), Class::Busy, Some(7))]
#[case::busy_for_ever(Reply::status(503).with("retry-after", "99999999999"), Class::Busy, Some(3600))]
#[case::busy_without_a_word(Reply::status(503), Class::Busy, None)]
#[case::out_of_order(Reply::status(500), Class::Silent, None)]
#[case::malformed(Reply::status(418), Class::Refused, None)]
#[case::nobody_there(Reply::Refusing, Class::Silent, None)]
#[case::silent(Reply::Silent, Class::Silent, None)]
#[case::silent_half_way(served().piece(Piece::Silence), Class::Silent, None)]
#[case::cut(served().piece(Piece::Cut), Class::Silent, None)]
#[case::an_error_that_never_ends(Reply::status(403).piece(Piece::Silence), Class::Refused, None)]
#[case::no_document(Reply::ok("<html>"), Class::Corrupt, None)]
#[case::schema_one(Reply::ok(r#"{"schemaVersion":1}"#), Class::Corrupt, None)]
#[case::sent_as_another_kind(Reply::ok(manifest()).with("content-type", crate::world::INDEX_TYPE), Class::Corrupt, None)]
fn what_is_no_answer_has_a_class(#[case] reply: Reply, #[case] class: Class, #[case] after: Option<u64>) {
    let world = World::new(move |_| reply.clone());
    let error = run(world.registry(Credentials::none()).resolve(&reference("registry.test/a:v1"))).unwrap_err();
    assert_eq!((error.class(), error.retry_after()), (class, after.map(Duration::from_secs)), "{error}");
    assert!(error.to_string().contains("registry.test"), "{error}");
    assert!(!error.next_step().is_empty());
    assert_eq!(world.heard().len(), 1, "a registry is asked once");
}

#[test]
fn a_name_without_an_address_is_silent() {
    let world = World::new(|_| served());
    let error = run(world.registry(Credentials::none()).resolve(&reference("nowhere.test/a:v1"))).unwrap_err();
    assert_eq!(error.class(), Class::Silent);
    assert!(matches!(error.failure(), Failure::NoAddress(_)));
}

#[test]
fn the_next_address_of_a_name_is_tried() {
    let world = World::new(|heard| if heard.address.is_ipv6() { Reply::Refusing } else { served() });
    world.names(HOST, &[&["2001:db8::1", "198.51.100.1"]]);
    run(world.registry(Credentials::none()).resolve(&reference("registry.test/a:v1"))).unwrap();
    assert_eq!(world.heard().len(), 2);
}

#[rstest]
#[case::as_it_says(Reply::status(200).with("content-length", (DOCUMENT_LIMIT + 1).to_string()).piece(Piece::Silence))]
#[case::as_it_comes(Reply::status(200).piece(Piece::Endless(Bytes::from(vec![b' '; 65536]))))]
fn a_manifest_without_end_is_not_read_to_its_end(#[case] reply: Reply) {
    let world = World::new(move |_| reply.clone());
    let error = run(world.registry(Credentials::none()).resolve(&reference("registry.test/a:v1"))).unwrap_err();
    assert_eq!(error.class(), Class::Corrupt);
    assert!(error.to_string().contains("longer than 4194304 bytes"), "{error}");
}

#[test]
fn a_tag_that_is_not_there_is_none_and_a_refusal_is_not() {
    for (status, expected) in [(404, Ok(None)), (403, Err(Class::Refused)), (500, Err(Class::Silent))] {
        let world = World::new(move |_| Reply::status(status));
        let registry = world.registry(Credentials::none());
        let found = run(registry.manifest_by_tag(&location("registry.test/a"), "sha256-ab.sig"));
        assert_eq!(found.map_err(|error| error.class()), expected);
        assert_eq!(world.asked(), ["registry.test/v2/a/manifests/sha256-ab.sig"]);
    }
}

#[test]
fn a_tag_stays_inside_its_path() {
    let world = World::new(|_| Reply::status(404));
    let registry = world.registry(Credentials::none());
    assert_eq!(run(registry.manifest_by_tag(&location("registry.test/a"), "../../b?c")), Ok(None));
    assert_eq!(world.asked(), ["registry.test/v2/a/manifests/..%2F..%2Fb%3Fc"]);
}

#[test]
fn a_name_that_no_registry_has_is_not_asked_for() {
    let world = World::new(|_| served());
    let registry = world.registry(Credentials::none());
    for image in ["registry.test:99999/a", &format!("registry.test/a@sha512:{}", "0".repeat(128))] {
        assert_eq!(run(registry.resolve(&reference(image))).unwrap_err().class(), Class::Forbidden);
    }
    assert!(world.heard().is_empty());
}
