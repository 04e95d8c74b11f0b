//! What is a reference, what is not, and what is said about it.

use proptest::prelude::*;
use rstest::rstest;
use windlass_images::{Part, Problem, Reference};

const SHA256: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parse(text: &str) -> Result<Reference, windlass_images::InvalidReference> {
    text.parse()
}

#[rstest]
#[case::a_bare_name("pd", None, "pd", None)]
#[case::a_tag("pd:v8.5.7", None, "pd", Some("v8.5.7"))]
#[case::a_team_is_no_registry("pingcap/pd:v8.5.7", None, "pingcap/pd", Some("v8.5.7"))]
#[case::a_dot_makes_a_registry("quay.io/openbao/openbao:2.5.5", Some("quay.io"), "openbao/openbao", Some("2.5.5"))]
#[case::a_port_makes_a_registry("registry:5000/pd", Some("registry:5000"), "pd", None)]
#[case::a_port_and_a_tag("registry:5000/a/b:1", Some("registry:5000"), "a/b", Some("1"))]
#[case::a_port_without_a_path_is_a_tag("registry:5000", None, "registry", Some("5000"))]
#[case::localhost_is_a_registry("localhost/pd:1", Some("localhost"), "pd", Some("1"))]
#[case::a_registry_may_have_upper_case("Registry.Example.COM/pd", Some("Registry.Example.COM"), "pd", None)]
#[case::an_address("10.0.0.1:5000/pd", Some("10.0.0.1:5000"), "pd", None)]
#[case::an_ipv6_address("[2001:db8::1]:5000/pd:1", Some("[2001:db8::1]:5000"), "pd", Some("1"))]
#[case::an_ipv6_address_without_a_port("[::1]/pd", Some("[::1]"), "pd", None)]
#[case::every_separator("team/a.b/c_d/e__f/g---h", None, "team/a.b/c_d/e__f/g---h", None)]
#[case::a_tag_with_everything("pd:_v8.5.7-A_b", None, "pd", Some("_v8.5.7-A_b"))]
fn parts_are_found(
    #[case] text: &str,
    #[case] registry: Option<&str>,
    #[case] repository: &str,
    #[case] tag: Option<&str>,
) {
    let plain = parse(text).unwrap();
    assert_eq!((plain.registry(), plain.repository(), plain.tag()), (registry, repository, tag));
    assert_eq!(plain.digest(), None);
    assert_eq!(plain.to_string(), text);

    let pinned = parse(&format!("{text}@{SHA256}")).unwrap();
    assert_eq!((pinned.registry(), pinned.repository(), pinned.tag()), (registry, repository, tag));
    assert_eq!(pinned.digest(), Some(SHA256));
}

#[rstest]
#[case("", Part::Image, Problem::Empty, r#"image "": the image is empty"#)]
#[case("pd:8.5:1", Part::Tag, Problem::Character { character: ':' }, r#"image "pd:8.5:1": the tag can't contain ':'"#)]
#[case("pd:", Part::Tag, Problem::Empty, r#"image "pd:": the tag is empty"#)]
#[case(
    "pd:-1",
    Part::Tag,
    Problem::Separator,
    r#"image "pd:-1": the tag has a dot, dash or underscore where a letter or digit is needed"#
)]
#[case("pd:é", Part::Tag, Problem::Character { character: 'é' }, r#"image "pd:é": the tag can't contain 'é'"#)]
#[case("PD:1", Part::Repository, Problem::UpperCase { character: 'P' }, r#"image "PD:1": the repository must be in lower case and contains 'P'"#)]
#[case("Team/pd", Part::Repository, Problem::UpperCase { character: 'T' }, r#"image "Team/pd": the repository must be in lower case and contains 'T'"#)]
#[case("p d", Part::Repository, Problem::Character { character: ' ' }, r#"image "p d": the repository can't contain ' '"#)]
#[case("pd\n", Part::Repository, Problem::Character { character: '\n' }, r#"image "pd\n": the repository can't contain '\n'"#)]
#[case(
    "a//b",
    Part::Repository,
    Problem::EmptyComponent,
    r#"image "a//b": the repository has an empty component: a slash too many"#
)]
#[case("quay.io/", Part::Repository, Problem::NoRepository, r#"image "quay.io/": the repository is missing"#)]
#[case(":1", Part::Repository, Problem::NoRepository, r#"image ":1": the repository is missing"#)]
#[case(
    "-pd",
    Part::Repository,
    Problem::Separator,
    r#"image "-pd": the repository has a dot, dash or underscore where a letter or digit is needed"#
)]
#[case(
    "p..d",
    Part::Repository,
    Problem::Separator,
    r#"image "p..d": the repository has a dot, dash or underscore where a letter or digit is needed"#
)]
#[case(
    "p___d",
    Part::Repository,
    Problem::Separator,
    r#"image "p___d": the repository has a dot, dash or underscore where a letter or digit is needed"#
)]
#[case(
    "registry:port/pd",
    Part::Registry,
    Problem::RegistryPort,
    r#"image "registry:port/pd": the registry has a port that is not a number"#
)]
#[case(
    "registry:/pd",
    Part::Registry,
    Problem::RegistryPort,
    r#"image "registry:/pd": the registry has a port that is not a number"#
)]
#[case(
    "-a.b/pd",
    Part::Registry,
    Problem::RegistryHost,
    r#"image "-a.b/pd": the registry is not a host name or address"#
)]
#[case(
    "https://quay.io/pd",
    Part::Registry,
    Problem::RegistryPort,
    r#"image "https://quay.io/pd": the registry has a port that is not a number"#
)]
#[case(
    "[::1/pd",
    Part::Registry,
    Problem::RegistryHost,
    r#"image "[::1/pd": the registry is not a host name or address"#
)]
#[case("pd@sha256:12", Part::Digest, Problem::DigestLength { digits: 64 }, r#"image "pd@sha256:12": the digest needs 64 lower-case hexadecimal digits"#)]
#[case(
    "pd@12",
    Part::Digest,
    Problem::DigestForm,
    r#"image "pd@12": the digest is not of the form algorithm:encoded, such as sha256:… with 64 hexadecimal digits"#
)]
#[case(
    "pd@",
    Part::Digest,
    Problem::DigestForm,
    r#"image "pd@": the digest is not of the form algorithm:encoded, such as sha256:… with 64 hexadecimal digits"#
)]
#[case("pd@a:b@c:d", Part::Digest, Problem::DigestForm, r#"image "pd@a:b@c:d": the digest is not of the form algorithm:encoded, such as sha256:… with 64 hexadecimal digits"#)]
fn what_is_wrong_and_where_is_said(
    #[case] text: &str,
    #[case] part: Part,
    #[case] problem: Problem,
    #[case] message: &str,
) {
    let error = parse(text).unwrap_err();
    assert_eq!((error.part(), error.problem()), (part, problem));
    assert_eq!(error.to_string(), message);
}

#[test]
fn digests_of_known_algorithms_have_their_length_and_lower_case() {
    assert_eq!(
        parse(&format!("pd@{}", SHA256.to_uppercase().replace("SHA", "sha"))).unwrap_err().problem(),
        Problem::DigestLength { digits: 64 }
    );
    assert!(parse(&format!("pd@sha512:{}", "a".repeat(128))).is_ok());
    assert!(parse(&format!("pd@sha512:{}", "a".repeat(64))).is_err());
    assert!(parse("pd@multihash+base58:QmRZxt2b1FVZPNqd8hsiykDL3TdBDeTSPX9Kv46HmX4Gx8").is_ok());
}

#[test]
fn long_parts_are_refused_at_their_limits() {
    assert!(parse(&format!("pd:{}", "a".repeat(128))).is_ok());
    assert_eq!(parse(&format!("pd:{}", "a".repeat(129))).unwrap_err().problem(), Problem::TooLong { limit: 128 });
    assert!(parse(&"a".repeat(255)).is_ok());
    let error = parse(&"a".repeat(1000)).unwrap_err();
    assert_eq!(error.problem(), Problem::TooLong { limit: 255 });
    assert!(error.to_string().len() < 400, "the message repeats only the start");
}

#[test]
fn an_image_id_is_no_reference() {
    let id = "a".repeat(64);
    assert_eq!(parse(&id).unwrap_err().problem(), Problem::LooksLikeAnId);
    assert!(parse(&format!("team/{id}")).is_ok());
}

#[rstest]
#[case("pd", "v9", "pd:v9")]
#[case("pd:v8", "v9", "pd:v9")]
#[case("registry:5000/team/pd:v8", "v9", "registry:5000/team/pd:v9")]
#[case("quay.io/pd", "v9", "quay.io/pd:v9")]
fn another_tag_replaces_the_tag_and_drops_the_digest(#[case] text: &str, #[case] tag: &str, #[case] expected: &str) {
    for written in [text.to_owned(), format!("{text}@{SHA256}")] {
        let changed = parse(&written).unwrap().with_tag(tag).unwrap();
        assert_eq!(changed.to_string(), expected);
        assert_eq!(changed, parse(expected).unwrap());
    }
}

#[test]
fn a_tag_can_not_smuggle_in_a_digest_or_a_path() {
    let image = parse("pd:v8").unwrap();
    for tag in ["", "a/b", "a:b", &format!("a@{SHA256}")] {
        assert_eq!(image.with_tag(tag).unwrap_err().part(), Part::Tag, "{tag}");
    }
}

proptest! {
    #[test]
    fn what_is_composed_is_found_again(
        registry in proptest::option::of("(localhost|[a-zA-Z0-9]{1,5}(\\.[a-z0-9]{1,5}){1,2}|[a-z]{1,5}:[0-9]{1,5})"),
        // The first component has no dot, because that would make it a registry.
        repository in "[a-z0-9]{1,6}((_|__|-{1,3})[a-z0-9]{1,4}){0,2}(/[a-z0-9]{1,6}((\\.|_|__|-{1,3})[a-z0-9]{1,4}){0,2}){0,3}",
        tag in proptest::option::of("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"),
        digest in proptest::option::of("sha256:[0-9a-f]{64}"),
    ) {
        prop_assume!(registry.is_some() || !repository.starts_with("localhost/"));
        let mut text = registry.as_ref().map_or_else(String::new, |registry| format!("{registry}/"));
        text.push_str(&repository);
        if let Some(tag) = &tag { text = format!("{text}:{tag}"); }
        if let Some(digest) = &digest { text = format!("{text}@{digest}"); }

        let reference = parse(&text).unwrap();
        prop_assert_eq!(reference.registry(), registry.as_deref());
        prop_assert_eq!(reference.repository(), repository.as_str());
        prop_assert_eq!(reference.tag(), tag.as_deref());
        prop_assert_eq!(reference.digest(), digest.as_deref());
        prop_assert_eq!(reference.as_str(), &text);
        let next = reference.with_tag("next").unwrap();
        prop_assert_eq!(next.registry(), registry.as_deref());
    }

    #[test]
    fn any_text_is_refused_or_kept_as_it_is(text in "[a-zA-Z0-9.:/@_\\[\\]é -]{0,40}") {
        if let Ok(reference) = parse(&text) {
            prop_assert_eq!(reference.to_string(), text);
        }
    }
}
