//! What refers to an image.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};
use windlass_images::{
    Digest, RegistryError,
    registry::{Class, Credentials, PAGES},
};

use crate::world::{INDEX_TYPE, Reply, World, descriptor, location, manifest, run};

const SIGNATURE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn entry(name: &str, artifact_type: &str) -> Value {
    let mut entry = descriptor(name.as_bytes());
    entry["artifactType"] = json!(artifact_type);
    entry
}

fn list(entries: &[Value]) -> Reply {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries});
    Reply::json(&index).with("content-type", INDEX_TYPE)
}

fn image() -> Digest {
    Digest::of(b"image")
}

fn referrers(world: &Arc<World>, artifact_type: Option<&str>) -> Result<Vec<Digest>, RegistryError> {
    let registry = world.registry(Credentials::none());
    let found = run(registry.referrers(&location("registry.test/a"), &image(), artifact_type))?;
    Ok(found.into_iter().map(|entry| entry.digest).collect())
}

#[rstest]
#[case::the_registry_filters_not(false)]
#[case::the_registry_filters(true)]
fn a_list_is_filtered_whatever_the_registry_does(#[case] filters: bool) {
    let world = World::new(move |_| {
        let all = [entry("a", SIGNATURE), entry("b", "application/spdx+json")];
        if filters { list(&all[..1]).with("oci-filters-applied", "artifactType") } else { list(&all) }
    });
    assert_eq!(referrers(&world, Some(SIGNATURE)).unwrap(), [Digest::of(b"a")]);
    let path = format!("registry.test/v2/a/referrers/{}", image());
    assert_eq!(world.asked(), [format!("{path}?artifactType=application%2Fvnd.dev.sigstore.bundle.v0.3%2Bjson")]);
}

#[test]
fn a_list_that_claims_to_be_filtered_is_filtered() {
    let world =
        World::new(|_| list(&[entry("b", "application/spdx+json")]).with("oci-filters-applied", "artifactType"));
    assert_eq!(referrers(&world, Some(SIGNATURE)), Ok(vec![]));
    assert_eq!(referrers(&world, None), Ok(vec![Digest::of(b"b")]));
}

#[rstest]
#[case(404)]
#[case(400)]
#[case(405)]
fn without_a_list_the_tag_is_asked(#[case] status: u16) {
    let world = World::new(move |heard| {
        if heard.path.contains("/referrers/") { Reply::status(status) } else { list(&[entry("a", SIGNATURE)]) }
    });
    assert_eq!(referrers(&world, Some(SIGNATURE)).unwrap(), [Digest::of(b"a")]);
    assert_eq!(world.asked()[1], format!("registry.test/v2/a/manifests/sha256-{}", image().hex()));
}

#[rstest]
#[case::no_tag_either(Reply::status(404), Ok(0))]
#[case::refused(Reply::status(403), Err(Class::Refused))]
#[case::no_list(Reply::ok(manifest()), Err(Class::Corrupt))]
fn the_tag_may_be_missing_or_wrong(#[case] reply: Reply, #[case] expected: Result<usize, Class>) {
    let world =
        World::new(move |heard| if heard.path.contains("/referrers/") { Reply::status(404) } else { reply.clone() });
    assert_eq!(referrers(&world, None).map(|found| found.len()).map_err(|error| error.class()), expected);
}

#[rstest]
#[case::refused(Reply::status(403), Class::Refused)]
#[case::busy(Reply::status(429), Class::Busy)]
#[case::out_of_order(Reply::status(500), Class::Silent)]
#[case::no_index(Reply::ok(manifest()), Class::Corrupt)]
fn a_registry_that_does_not_say_is_not_one_without_a_list(#[case] reply: Reply, #[case] class: Class) {
    let world = World::new(move |_| reply.clone());
    assert_eq!(referrers(&world, None).unwrap_err().class(), class);
    assert_eq!(world.heard().len(), 1);
}

#[test]
fn pages_are_read_one_after_the_other() {
    let world = World::new(|heard| match heard.path.split_once("page=").map(|(_, page)| page) {
        None => list(&[entry("a", SIGNATURE)])
            .with("link", format!(r#"</first>; rel="first", </v2/a/referrers/{}?page=2>; rel="next""#, image())),
        Some("2") => list(&[entry("b", SIGNATURE)])
            .with("link", format!("<https://registry.test/v2/a/referrers/{}?page=3>;rel=next", image())),
        Some(_) => list(&[entry("c", SIGNATURE)]),
    });
    assert_eq!(referrers(&world, None).unwrap(), [Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"c")]);
}

#[test]
fn pages_that_go_round_end() {
    let world = World::new(|heard| list(&[]).with("link", format!("<{}>; rel=\"next\"", heard.path)));
    assert_eq!(referrers(&world, None).unwrap_err().class(), Class::Corrupt);
    assert_eq!(world.heard().len(), PAGES);
}

#[rstest]
#[case::another_host(format!("https://storage.test/v2/a/referrers/{}", image()))]
#[case::without_tls(format!("http://registry.test/v2/a/referrers/{}", image()))]
#[case::another_list("/v2/b/referrers/x".to_owned())]
fn pages_are_of_the_same_list(#[case] link: String) {
    let world = World::new(move |_| list(&[]).with("link", format!("<{link}>; rel=\"next\"")));
    assert_eq!(referrers(&world, None).unwrap_err().class(), Class::Forbidden);
    assert_eq!(world.heard().len(), 1);
}

#[test]
fn only_so_many_entries_are_read() {
    let many = |count: usize| list(&vec![entry("a", SIGNATURE); count]);
    let world = World::new(move |_| many(1001));
    assert_eq!(referrers(&world, None).unwrap_err().class(), Class::Corrupt);
    let world = World::new(move |_| many(1000));
    assert_eq!(referrers(&world, None).map(|found| found.len()), Ok(1000));
}
