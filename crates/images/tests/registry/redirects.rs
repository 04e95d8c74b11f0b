//! Where registries lead, and what is carried there.

use std::sync::Arc;

use rstest::rstest;
use windlass_images::registry::{Class, Credentials, Failure, route::Refusal};

use crate::world::{HOST, Heard, Reply, World, login, reference, run, served};

/// A registry that wants a password, and then leads somewhere.
fn leading_to(to: &'static str) -> Arc<World> {
    World::new(move |heard| match (heard.path.starts_with("/v2/"), heard.authorization()) {
        (false, _) => served(),
        (true, Some(_)) => Reply::redirect(to),
        (true, None) => Reply::status(401).with("www-authenticate", "Basic realm=x"),
    })
}

fn ask(world: &Arc<World>, image: &str) -> Result<(), windlass_images::RegistryError> {
    let registry = image.split('/').next().unwrap();
    let credentials = login(registry, "me", "s3cret");
    run(world.registry(credentials).resolve(&reference(image))).map(drop)
}

fn last(world: &World) -> Heard {
    world.heard().pop().unwrap()
}

/// The seeded bug CredentialsFollowRedirect must break this.
pub fn credentials_do_not_follow_to_the_storage() {
    let world = leading_to("https://storage.test/blob?signed=1");
    ask(&world, "registry.test/a:v1").unwrap();
    let storage = last(&world);
    assert_eq!((storage.host.as_str(), storage.path.as_str()), ("storage.test", "/blob?signed=1"));
    assert_eq!(storage.header("host"), Some("storage.test"));
    assert_eq!(storage.authorization(), None, "a password at somebody else's");
}

#[test]
fn credentials_stay_at_home() {
    credentials_do_not_follow_to_the_storage();
}

#[rstest]
#[case::the_same_registry("/blob", Some("registry.test/blob"), true)]
#[case::the_same_registry_in_full("https://registry.test:443/blob", Some("registry.test/blob"), true)]
#[case::another_port("https://registry.test:8443/blob", Some("registry.test/blob"), false)]
#[case::another_host("https://storage.test/blob", Some("storage.test/blob"), false)]
fn credentials_go_on_to_the_same_registry_alone(
    #[case] to: &'static str,
    #[case] asked: Option<&str>,
    #[case] carried: bool,
) {
    let world = leading_to(to);
    ask(&world, "registry.test/a:v1").unwrap();
    assert_eq!(world.asked().last().map(String::as_str), asked);
    assert_eq!(last(&world).authorization().is_some(), carried);
}

#[test]
fn credentials_are_not_shown_on_the_way_back() {
    let world = World::new(|heard| match (heard.host.as_str(), heard.path.as_str(), heard.authorization()) {
        (HOST, "/back", _) => served(),
        (HOST, _, None) => Reply::status(401).with("www-authenticate", "Basic"),
        (HOST, _, Some(_)) => Reply::redirect("https://storage.test/x"),
        (_, _, _) => Reply::redirect("https://registry.test/back"),
    });
    ask(&world, "registry.test/a:v1").unwrap();
    assert_eq!((last(&world).path.as_str(), last(&world).authorization()), ("/back", None));
}

/// The seeded bug RedirectAnywhere must break this.
pub fn no_redirect_leads_inside() {
    for (image, to) in [
        ("registry.test/a:v1", "https://metadata.test/latest"),
        ("registry.test/a:v1", "https://169.254.169.254/latest"),
        ("registry.test/a:v1", "https://[::ffff:169.254.169.254]/latest"),
        ("registry.test/a:v1", "https://[fd00:ec2::254]/latest"),
        ("registry.test/a:v1", "https://home.test/x"),
        ("registry.test/a:v1", "https://0.0.0.0/x"),
        ("registry.test/a:v1", "https://service.test/x"),
        ("registry.test/a:v1", "https://private.test/x"),
        ("private.test/a:v1", "https://service.test/x"),
        ("private.test/a:v1", "https://home.test/x"),
        ("private.test/a:v1", "https://metadata.test/x"),
        ("service.test/a:v1", "https://home.test/x"),
        ("registry.test/a:v1", "http://storage.test/x"),
        ("registry.test/a:v1", "http://registry.test/x"),
    ] {
        let world = leading_to(to);
        let result = ask(&world, image);
        let error = result.expect_err(to);
        assert_eq!(error.class(), Class::Forbidden, "{to}: {error}");
        let own = image.split('/').next().unwrap();
        assert!(world.heard().iter().all(|heard| heard.host == own && heard.tls), "{to}: {:?}", world.asked());
    }
}

#[test]
fn redirects_lead_outside_alone() {
    no_redirect_leads_inside();
}

#[rstest]
#[case::storage_next_door("private.test/a:v1", "https://nas.test/x")]
#[case::storage_outside("private.test/a:v1", "https://storage.test/x")]
#[case::storage_in_the_cluster("service.test/a:v1", "https://10.96.7.7/x")]
#[case::this_machine("home.test/a:v1", "https://127.0.0.1:5001/x")]
fn a_registry_inside_may_lead_to_its_neighbours(#[case] image: &str, #[case] to: &'static str) {
    let world = leading_to(to);
    ask(&world, image).unwrap();
    assert_eq!(last(&world).authorization(), None);
}

#[test]
fn no_registry_is_at_the_metadata() {
    let world = World::new(|_| served());
    for image in ["metadata.test/a:v1", "169.254.169.254/a:v1", "[fd00:ec2::254]/a:v1"] {
        assert_eq!(ask(&world, image).unwrap_err().class(), Class::Forbidden, "{image}");
    }
    assert!(world.heard().is_empty());
}

#[test]
fn this_machine_is_no_registry_unless_an_administrator_says_so() {
    let world = World::new(|_| served());
    world.names(HOST, &[&["127.0.0.1"]]);
    for image in ["registry.test/a:v1", "127.0.0.1/a:v1", "localhost:8443/a:v1"] {
        world.names("localhost", &[&["::1", "127.0.0.1"]]);
        assert_eq!(ask(&world, image).unwrap_err().class(), Class::Forbidden, "{image}");
    }
    assert!(world.heard().is_empty());
    ask(&world, "home.test/a:v1").unwrap();
}

#[test]
fn one_forbidden_address_among_others_is_reason_enough() {
    let world = leading_to("https://storage.test/x");
    world.names("storage.test", &[&["198.51.100.2", "10.96.0.1"]]);
    let error = ask(&world, "registry.test/a:v1").unwrap_err();
    assert!(
        matches!(error.failure(), Failure::Led(Refusal::Address { address, .. }) if address.to_string() == "10.96.0.1")
    );
}

#[test]
fn the_address_that_was_judged_is_the_one_that_is_dialled() {
    let world = leading_to("https://storage.test/x");
    // A name that answers otherwise as soon as it was judged.
    world.names("storage.test", &[&["198.51.100.2"], &["169.254.169.254"]]);
    ask(&world, "registry.test/a:v1").unwrap();
    assert_eq!(last(&world).address.to_string(), "198.51.100.2");
    // The next request looks again, and judges again.
    assert_eq!(ask(&world, "registry.test/a:v1").unwrap_err().class(), Class::Forbidden);
    assert!(world.heard().iter().all(|heard| heard.address.to_string() != "169.254.169.254"));
}

#[rstest]
#[case::to_itself("/v2/a/manifests/v1")]
#[case::around("https://storage.test/v2/loop")]
fn loops_end(#[case] to: &'static str) {
    let world = World::new(move |_| Reply::redirect(to));
    let registry = world.registry(Credentials::none());
    let error = run(registry.resolve(&reference("registry.test/a:v1"))).unwrap_err();
    assert_eq!(error.failure(), &Failure::Led(Refusal::TooMany));
    assert_eq!(world.heard().len(), 1 + 5);
}

#[rstest]
#[case::nowhere(Reply::status(302))]
#[case::no_address(Reply::redirect("https://"))]
#[case::another_scheme(Reply::redirect("ftp://storage.test/"))]
#[case::with_a_user(Reply::redirect("https://me:s3cret@storage.test/"))]
fn a_redirect_that_is_none_is_refused(#[case] reply: Reply) {
    let world = World::new(move |_| reply.clone());
    assert_eq!(ask(&world, "registry.test/a:v1").unwrap_err().class(), Class::Forbidden);
    assert_eq!(world.heard().len(), 1);
}

#[test]
fn what_a_storage_says_is_not_taken_for_the_registrys_word() {
    // A storage that asks for a password gets none.
    let world = World::new(|heard| match heard.host.as_str() {
        HOST => Reply::redirect("https://storage.test/x"),
        _ => Reply::status(401).with("www-authenticate", "Basic"),
    });
    let error = ask(&world, "registry.test/a:v1").unwrap_err();
    assert_eq!((error.class(), error.asked().at.as_deref()), (Class::Refused, Some("storage.test")));
    assert_eq!(world.heard().len(), 2);
}
