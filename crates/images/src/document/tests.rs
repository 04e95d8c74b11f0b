use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::Digest;

fn described(content: &str) -> Value {
    json!({"mediaType": "application/x", "digest": Digest::of(content.as_bytes()).as_str(), "size": content.len()})
}

fn entry(os: &str, architecture: &str) -> Value {
    let mut entry = described(architecture);
    entry["platform"] = json!({"os": os, "architecture": architecture});
    entry
}

fn index(media_type: Option<&str>) -> Value {
    let mut document = json!({"schemaVersion": 2, "manifests": [
        entry("linux", "amd64"), entry("linux", "arm64"), entry("unknown", "unknown")
    ]});
    if let Some(media_type) = media_type {
        document["mediaType"] = json!(media_type);
    }
    document
}

fn manifest(media_type: Option<&str>) -> Value {
    let mut document = json!({"schemaVersion": 2, "config": described("config"), "layers": [described("layer")]});
    if let Some(media_type) = media_type {
        document["mediaType"] = json!(media_type);
    }
    document
}

fn read(content_type: Option<&str>, document: &Value) -> Result<Document, Unreadable> {
    Document::read_as(content_type, document.to_string().as_bytes())
}

#[rstest]
#[case::oci(Some(OCI_INDEX), None)]
#[case::docker(Some(DOCKER_LIST), Some(DOCKER_LIST))]
#[case::oci_in_docker_clothes(Some(DOCKER_LIST), Some(OCI_INDEX))]
#[case::untold(None, None)]
#[case::parameters(Some("application/vnd.oci.image.index.v1+json; charset=utf-8"), None)]
#[case::a_type_that_says_nothing(Some("application/json"), None)]
fn an_index_is_read(#[case] header: Option<&str>, #[case] body: Option<&str>) {
    let document = read(header, &index(body)).unwrap();
    assert_eq!(document.index().map(|index| index.manifests.len()), Some(3));
    assert_eq!(document.manifest(), None);
}

#[rstest]
#[case::oci(Some(OCI_MANIFEST), Some(OCI_MANIFEST))]
#[case::docker(Some(DOCKER_MANIFEST), Some(DOCKER_MANIFEST))]
#[case::untold(None, None)]
fn a_manifest_is_read(#[case] header: Option<&str>, #[case] body: Option<&str>) {
    let document = read(header, &manifest(body)).unwrap();
    let manifest = document.manifest().unwrap();
    assert_eq!((manifest.config.digest.clone(), manifest.config.size), (Digest::of(b"config"), 6));
    assert_eq!(manifest.layers.len(), 1);
}

#[rstest]
#[case::an_index_sent_as_a_manifest(
    Some(OCI_MANIFEST),
    index(Some(OCI_INDEX)),
    "calls it a manifest and it calls itself an index"
)]
#[case::a_manifest_sent_as_an_index(
    Some(OCI_INDEX),
    manifest(Some(OCI_MANIFEST)),
    "calls it an index and it calls itself a manifest"
)]
#[case::an_index_that_says_manifest(None, index(Some(OCI_MANIFEST)), "no config")]
#[case::a_manifest_that_says_index(Some(OCI_INDEX), manifest(None), "no manifests")]
#[case::an_unknown_type(None, manifest(Some("text/plain")), "of type text/plain")]
#[case::schema_one(None, json!({"schemaVersion": 1, "fsLayers": []}), "schema 1")]
#[case::schema_one_by_its_type(Some(DOCKER_SCHEMA_1_SIGNED), manifest(None), "schema 1")]
#[case::schema_three(None, json!({"schemaVersion": 3}), "schemaVersion 3")]
#[case::no_version(None, json!({"manifests": []}), "schemaVersion")]
#[case::no_layers(None, json!({"schemaVersion": 2, "config": described("c")}), "no layers")]
#[case::no_object(None, json!([1]), "form")]
fn what_is_not_a_document_is_refused(#[case] header: Option<&str>, #[case] document: Value, #[case] words: &str) {
    let error = read(header, &document).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[rstest]
#[case("layers")]
#[case("config")]
fn what_can_be_read_in_two_ways_is_refused(#[case] other: &str) {
    let mut document = index(None);
    document[other] = manifest(None)[other].clone();
    for header in [None, Some(OCI_INDEX), Some(OCI_MANIFEST)] {
        assert_eq!(read(header, &document), Err(Unreadable::BothKinds));
    }
}

#[rstest]
#[case::at_the_top(json!({"schemaVersion": 2, "manifests": [], "Layers": []}), "\"Layers\"")]
#[case::letters_of_other_alphabets(json!({"schemaVersion": 2, "manifests": [], "layerſ": []}), "\"layerſ\"")]
#[case::deep_inside(json!({"schemaVersion": 2, "manifests": [{"digesT": "x"}]}), "\"digesT\"")]
fn names_that_go_would_take_for_known_ones_are_refused(#[case] document: Value, #[case] name: &str) {
    assert_eq!(read(None, &document), Err(Unreadable::LookAlike(name.to_owned())));
}

#[test]
fn annotations_may_have_any_names_and_unknown_fields_are_ignored() {
    let mut document = index(None);
    document["annotations"] = json!({"Layers": "x", "org.example/size": "y"});
    document["signatures"] = json!([{"header": {"alg": null, "f": 1.5, "n": -1, "b": true}}]);
    assert_eq!(read(None, &document).unwrap().index().unwrap().annotations.len(), 2);
}

#[test]
fn a_field_that_stands_there_twice_is_refused() {
    let twice = br#"{"schemaVersion":2,"manifests":[],"manifests":[]}"#;
    assert!(Document::read(twice).unwrap_err().to_string().contains("duplicate field"));
}

#[test]
fn a_list_of_values_is_no_object() {
    let mut document = manifest(None);
    document["config"] = json!(["application/x", Digest::of(b"").as_str(), 0, null, null, null]);
    assert!(matches!(read(None, &document), Err(Unreadable::Form(_))));
    let config = CONFIG.replace(r#"{"type":"layers","diff_ids":"#, r#"["layers","#).replace("]}}", "]]}");
    assert!(matches!(Config::read(config.as_bytes()), Err(Unreadable::Form(_))), "{config}");
}

#[rstest]
#[case::negative("size", json!(-1))]
#[case::a_fraction("size", json!(1.5))]
#[case::more_than_anything("size", json!(u64::MAX))]
#[case::no_digest("digest", json!("sha256:abc"))]
#[case::another_algorithm("digest", json!(format!("sha512:{}", "0".repeat(128))))]
fn descriptors_are_strict(#[case] field: &str, #[case] value: Value) {
    let mut document = manifest(None);
    document["layers"][0][field] = value;
    assert!(matches!(read(None, &document), Err(Unreadable::Form(_))));
}

#[test]
fn only_so_many_bytes_are_read() {
    let mut bytes = manifest(None).to_string().into_bytes();
    bytes.resize(DOCUMENT_LIMIT, b' ');
    assert!(Document::read(&bytes).is_ok());
    bytes.push(b' ');
    assert_eq!(Document::read(&bytes), Err(Unreadable::TooLong { limit: DOCUMENT_LIMIT }));
    assert_eq!(Config::read(&vec![b' '; CONFIG_LIMIT + 1]), Err(Unreadable::TooLong { limit: CONFIG_LIMIT }));
}

/// A node whose platform is not there must be named. The seeded bug below must break this.
fn platforms_of_nodes_that_are_not_there_are_named() {
    let document = read(None, &index(None)).unwrap();
    let nodes = [Platform::new("linux", "amd64"), Platform::new("linux", "s390x"), Platform::new("unknown", "unknown")];
    let missing = document.index().unwrap().missing(&nodes);
    assert_eq!(missing.iter().map(ToString::to_string).collect::<Vec<_>>(), ["linux/s390x", "unknown/unknown"]);
    let config = Config::read(CONFIG.as_bytes()).unwrap();
    assert_eq!(config.missing(&nodes).len(), 2);
}

#[test]
fn platforms_of_nodes_are_compared() {
    platforms_of_nodes_that_are_not_there_are_named();
}

#[cfg(feature = "seeded-bugs")]
#[test]
fn a_platform_that_is_not_checked_is_caught() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use windlass_plan::bug::{Bug, plant};
    plant(Some(Bug::PlatformNotChecked));
    let result = catch_unwind(AssertUnwindSafe(platforms_of_nodes_that_are_not_there_are_named));
    plant(None);
    assert!(result.is_err());
}

#[test]
fn an_attestation_is_no_platform_whatever_it_says() {
    let mut document = index(None);
    document["manifests"][0]["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let document = read(None, &document).unwrap();
    assert_eq!(document.index().unwrap().entry(&Platform::new("linux", "amd64")), None);
    assert!(document.index().unwrap().entry(&Platform::new("linux", "arm64")).is_some());
}

const CONFIG: &str = r#"{"os":"linux","architecture":"amd64","config":{"Env":["A=b"],"Cmd":["x"]},"history":[],
    "rootfs":{"type":"layers","diff_ids":["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]}}"#;

#[test]
fn a_configuration_is_read() {
    let config = Config::read(CONFIG.as_bytes()).unwrap();
    assert_eq!(config.platform, Platform::new("linux", "amd64"));
    assert_eq!((config.env, config.diff_ids), (vec!["A=b".to_owned()], vec![Digest::of(b"")]));
    for (from, to) in [("layers", "other"), ("sha256:e3", "sha256:"), ("\"os\"", "\"so\"")] {
        assert!(Config::read(CONFIG.replace(from, to).as_bytes()).is_err(), "{from}");
    }
}

proptest! {
    #[test]
    fn no_bytes_bring_the_readers_down(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Document::read(&bytes), Config::read(&bytes));
    }

    /// One byte of a good document is changed: it is refused, or read as something whose digests are still digests.
    #[test]
    fn a_changed_byte_brings_nothing_down(place in 0_usize..900, byte in any::<u8>()) {
        let mut bytes = index(Some(OCI_INDEX)).to_string().into_bytes();
        let place = place % bytes.len();
        bytes[place] = byte;
        let _ = Document::read(&bytes);
    }
}
