//! Where a request may go, and what it may carry there. Pure functions; [`super::exchange`] asks them before it dials.
//!
//! A registry says where its blobs are and who hands out its tokens, and the author of an image's name picks the registry. Without rules that
//! would let a person who may only write a name have the operator, from where it stands, ask anything of anybody, and have it carry passwords
//! there. The rules: a registry is where its name resolves to; everything that it leads to is judged by the address that is then dialled;
//! and what it was shown is shown to nobody else.

use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use http::Uri;
use windlass_plan::bug::{self, Bug};

/// How many redirects one request may take. Registries need one, to their storage.
pub const REDIRECTS: usize = 5;

/// The longest address of a redirect, a realm or a page. Signed links to a storage have about two kilobytes.
pub const URL_LIMIT: usize = 8 * 1024;

/// Who answers. Two requests go to the same one only where scheme, host and port are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name or an address, in lower case and without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// For `Host`: a port that goes without saying is not said. Links to a storage are signed over this text.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// The port of a scheme.
pub fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// One place to ask.
#[derive(Clone, PartialEq, Eq)]
pub struct Hop {
    /// Who is asked.
    pub origin: Origin,
    /// For what: path and query.
    pub path: String,
}

/// Without path and query: the links of a storage are keys to it.
impl fmt::Debug for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hop").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Why a request does not go where a registry leads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not an address that can be read.
    #[error("it gives an address that can't be read")]
    Unreadable,
    /// Not `http` or `https`.
    #[error("it gives an address that is neither http nor https")]
    Scheme,
    /// A name or a password in an address.
    #[error("it gives an address with a user in it")]
    User,
    /// From TLS to none.
    #[error("it leads from https to http, at {0}")]
    Downgrade(String),
    /// One redirect after the other.
    #[error("it redirects more than {REDIRECTS} times")]
    TooMany,
    /// A redirect of something that is not followed.
    #[error("it redirects a request for a token")]
    TokenRedirected,
    /// A realm that would get a password, or give a token, for all to read.
    #[error("it wants a token fetched from {0}, which does not use TLS")]
    PlainRealm(String),
    /// A page of a list that somebody else has.
    #[error("the next page of its list is at {0}")]
    ForeignPage(String),
    /// An address that nobody's registry has.
    #[error("{host} is at {address}, which is {what}")]
    Address {
        /// The name that was resolved.
        host: String,
        /// What it resolved to.
        address: IpAddr,
        /// What is wrong with that.
        what: &'static str,
    },
}

/// Reads an absolute address.
pub fn parse(url: &str) -> Result<Hop, Refusal> {
    if url.len() > URL_LIMIT {
        return Err(Refusal::Unreadable);
    }
    let uri: Uri = url.parse().map_err(|_| Refusal::Unreadable)?;
    let tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) => return Err(Refusal::Scheme),
        None => return Err(Refusal::Unreadable),
    };
    let authority = uri.authority().ok_or(Refusal::Unreadable)?;
    if authority.as_str().contains('@') {
        return Err(Refusal::User);
    }
    let port = match authority.port() {
        Some(port) => port.as_u16(),
        // `host:` and a number too large for a port are also here.
        None if authority.as_str() != authority.host() => return Err(Refusal::Unreadable),
        None => default_port(tls),
    };
    let host = host(authority.host()).ok_or(Refusal::Unreadable)?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    // `https://host?query` has no slash of its own.
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Hop { origin: Origin { tls, host, port }, path })
}

/// A host in the form in which hosts are compared.
fn host(text: &str) -> Option<String> {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fits = !text.is_empty() && text.len() <= 253 && text.bytes().all(is_name);
    fits.then(|| text.to_ascii_lowercase())
}

/// Where a redirect leads.
pub fn redirect(from: &Hop, location: &str) -> Result<Hop, Refusal> {
    let to = relative(from, location)?;
    if from.origin.tls && !to.origin.tls && !bug::active(Bug::RedirectAnywhere) {
        return Err(Refusal::Downgrade(to.origin.host));
    }
    Ok(to)
}

fn relative(from: &Hop, location: &str) -> Result<Hop, Refusal> {
    // `//host/path` is another host, and is written by nobody who means well.
    if !location.starts_with('/') || location.starts_with("//") {
        return parse(location);
    }
    // Read as a whole, so that a path holds what paths may hold.
    parse(&format!("{}{location}", from.origin))
}

/// The next page of a list: the same registry's, of the same list.
pub fn page(from: &Hop, link: &str) -> Result<Hop, Refusal> {
    let to = relative(from, link)?;
    let list = |hop: &Hop| hop.path.split('?').next().map(str::to_owned);
    if to.origin != from.origin || list(&to) != list(from) {
        return Err(Refusal::ForeignPage(to.origin.host));
    }
    Ok(to)
}

/// Who hands out a registry's tokens. A password and a token go over TLS; where an administrator lets a registry be reached without, it may
/// hand out its own.
pub fn realm(registry: &Origin, url: &str) -> Result<Hop, Refusal> {
    let realm = parse(url)?;
    if realm.origin.tls || realm.origin == *registry { Ok(realm) } else { Err(Refusal::PlainRealm(realm.origin.host)) }
}

/// Whether what was shown to `registry` may be shown to `next`: never again once the way has left it, not even back there, for then somebody
/// else has picked what is asked.
pub fn carries(registry: &Origin, has_left: bool, next: &Origin) -> bool {
    bug::active(Bug::CredentialsFollowRedirect) || (!has_left && next == registry)
}

/// A range of addresses, `10.96.0.0/12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: IpAddr,
    bits: u8,
}

/// A text that is no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no range of addresses: 10.96.0.0/12 is one")]
pub struct InvalidRange;

impl FromStr for Range {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let (first, bits) = text.trim().split_once('/').ok_or(InvalidRange)?;
        let first: IpAddr = first.parse().map_err(|_| InvalidRange)?;
        let bits: u8 = bits.parse().map_err(|_| InvalidRange)?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        if bits <= most { Ok(Self { first, bits }) } else { Err(InvalidRange) }
    }
}

impl Range {
    /// Whether this address is one of it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                first.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                first.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// What kind of neighbours an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Neighbourhood {
    /// Everybody's.
    Public,
    /// Somebody's own network.
    Private,
    /// The cluster's own addresses, of services and of pods.
    Cluster,
    /// This machine.
    Loopback,
}

impl Neighbourhood {
    fn describe(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Cluster => "an address of this cluster",
            Self::Loopback => "a loopback address",
        }
    }
}

/// How a request came to be made.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'a> {
    /// To the registry that the image's name names. A person who may write a name can't reach this machine, so its own addresses are for
    /// registries that an administrator has listed.
    Named {
        /// Whether the settings name it: as one without TLS, or with an authority of its own.
        is_listed: bool,
    },
    /// To a host that the registry named, which is in these neighbourhoods itself.
    Led(&'a BTreeSet<Neighbourhood>),
}

/// Whether every one of these addresses of `host` may be dialled, and what neighbourhoods they are in. One that may not is reason enough: who
/// names two addresses of which one is forbidden wants the check to see the other.
pub fn judge(
    host: &str,
    addresses: &[IpAddr],
    ranges: &[Range],
    standing: Standing<'_>,
) -> Result<BTreeSet<Neighbourhood>, Refusal> {
    let refused = |address: IpAddr, what| Refusal::Address { host: host.to_owned(), address, what };
    let mut found = BTreeSet::new();
    for address in addresses.iter().copied() {
        match standing {
            Standing::Led(_) if bug::active(Bug::RedirectAnywhere) => continue,
            Standing::Led(_) | Standing::Named { .. } => {}
        }
        let neighbourhood = neighbourhood(address, ranges).map_err(|what| refused(address, what))?;
        match standing {
            Standing::Led(own) if neighbourhood != Neighbourhood::Public && !own.contains(&neighbourhood) => {
                return Err(refused(address, neighbourhood.describe()));
            }
            Standing::Named { is_listed: false } if neighbourhood == Neighbourhood::Loopback => {
                return Err(refused(address, neighbourhood.describe()));
            }
            Standing::Led(_) | Standing::Named { .. } => {}
        }
        found.insert(neighbourhood);
    }
    Ok(found)
}

/// Metadata services of clouds whose addresses look like anybody's. The others are link-local.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// The neighbourhood of an address; an error where no registry, storage or realm can be.
fn neighbourhood(address: IpAddr, ranges: &[Range]) -> Result<Neighbourhood, &'static str> {
    let address = plain(address);
    if METADATA.contains(&address) {
        return Err("the metadata service of a cloud");
    }
    let special = match address {
        IpAddr::V4(address) => special_v4(address)?,
        IpAddr::V6(address) => special_v6(address)?,
    };
    if special == Neighbourhood::Loopback {
        return Ok(special);
    }
    let is_cluster = ranges.iter().any(|range| range.contains(address));
    Ok(if is_cluster { Neighbourhood::Cluster } else { special })
}

/// An IPv4 address that is wrapped into an IPv6 address leads to the IPv4 address.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(wrapped) = address else { return address };
    let low = |bits: u128| IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits & 0xffff_ffff).unwrap_or_default()));
    match wrapped.segments() {
        // ::ffff:a.b.c.d, and a translator's 64:ff9b::a.b.c.d.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => low(wrapped.to_bits()),
        // 2002:a.b.c.d::, a tunnel.
        [0x2002, _, _, _, _, _, _, _] => low(wrapped.to_bits() >> 80),
        _ => address,
    }
}

fn special_v4(address: Ipv4Addr) -> Result<Neighbourhood, &'static str> {
    match address.octets() {
        [0, ..] => Err("an unspecified address"),
        [127, ..] => Ok(Neighbourhood::Loopback),
        [169, 254, ..] => Err("a link-local address"),
        [224..=239, ..] => Err("a multicast address"),
        [240..=255, ..] | [192, 0, 0, _] => Err("a reserved address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => {
            Ok(Neighbourhood::Private)
        }
        _ => Ok(Neighbourhood::Public),
    }
}

fn special_v6(address: Ipv6Addr) -> Result<Neighbourhood, &'static str> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Ok(Neighbourhood::Loopback),
        // Unspecified, and forms of IPv4 that nothing uses any more.
        [0, 0, 0, 0, 0, 0, _, _] => Err("an unspecified address"),
        [first, ..] if first & 0xffc0 == 0xfe80 => Err("a link-local address"),
        [first, ..] if first & 0xff00 == 0xff00 => Err("a multicast address"),
        // Unique local, site-local, and a translator's own range.
        [first, ..] if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 => Ok(Neighbourhood::Private),
        [0x64, 0xff9b, 1, ..] => Ok(Neighbourhood::Private),
        _ => Ok(Neighbourhood::Public),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn at(url: &str) -> Hop {
        parse(url).unwrap()
    }

    fn ranges() -> Vec<Range> {
        ["10.96.0.0/12", "fd00:10:96::/112", "203.0.113.0/24"].map(|text| text.parse().unwrap()).to_vec()
    }

    #[rstest]
    #[case("https://registry.test/v2/", "https://registry.test", "/v2/")]
    #[case("https://Registry.TEST:443/v2/?a=b", "https://registry.test", "/v2/?a=b")]
    #[case("http://registry.test:5000", "http://registry.test:5000", "/")]
    #[case("https://registry.test?a=b", "https://registry.test", "/?a=b")]
    #[case("https://[FD00::1]:8443/x", "https://[fd00::1]:8443", "/x")]
    fn addresses_are_read(#[case] url: &str, #[case] origin: &str, #[case] path: &str) {
        let hop = at(url);
        assert_eq!((hop.origin.to_string(), hop.path.as_str()), (origin.to_owned(), path));
    }

    #[rstest]
    #[case::no_scheme("registry.test/v2/", Refusal::Unreadable)]
    #[case::another_scheme("file:///etc/passwd", Refusal::Unreadable)]
    #[case::another_scheme_with_a_host("ftp://registry.test/", Refusal::Scheme)]
    #[case::a_user("https://registry.test@evil.test/", Refusal::User)]
    #[case::a_port_that_is_none("https://registry.test:99999/", Refusal::Unreadable)]
    #[case::an_empty_port("https://registry.test:/", Refusal::Unreadable)]
    #[case::no_host("https:///v2/", Refusal::Unreadable)]
    #[case::another_host_without_a_scheme("//evil.test/", Refusal::Unreadable)]
    #[case::spaces("https://registry.test/a b", Refusal::Unreadable)]
    #[case::nothing("", Refusal::Unreadable)]
    fn other_addresses_are_refused(#[case] url: &str, #[case] refusal: Refusal) {
        assert_eq!(parse(url), Err(refusal.clone()));
        assert_eq!(redirect(&at("https://registry.test/"), url), Err(refusal));
    }

    #[test]
    fn long_addresses_are_refused() {
        assert!(parse(&format!("https://a.test/{}", "x".repeat(URL_LIMIT))).is_err());
    }

    #[rstest]
    #[case::here("/v2/blob?x=1", Ok("https://registry.test:5000"))]
    #[case::elsewhere("https://storage.test/b", Ok("https://storage.test"))]
    #[case::without_tls("http://storage.test/b", Err(Refusal::Downgrade("storage.test".into())))]
    #[case::here_without_tls("http://registry.test:5000/b", Err(Refusal::Downgrade("registry.test".into())))]
    fn redirects_lead_on(#[case] location: &str, #[case] expected: Result<&str, Refusal>) {
        let found = redirect(&at("https://registry.test:5000/v2/a"), location).map(|hop| hop.origin.to_string());
        assert_eq!(found, expected.map(str::to_owned));
    }

    #[rstest]
    #[case::over_tls("https://registry.test", "https://auth.test/token", true)]
    #[case::without_tls("https://registry.test", "http://auth.test/token", false)]
    #[case::its_own_without_tls("https://registry.test", "http://registry.test/token", false)]
    #[case::a_plain_registry_and_its_own("http://registry.test:5000", "http://registry.test:5000/token", true)]
    #[case::a_plain_registry_and_another_port("http://registry.test:5000", "http://registry.test/token", false)]
    #[case::a_plain_registry_and_another_host("http://registry.test", "http://auth.test/token", false)]
    fn tokens_are_fetched_where_nobody_listens(#[case] registry: &str, #[case] url: &str, #[case] expected: bool) {
        assert_eq!(realm(&at(registry).origin, url).is_ok(), expected);
    }

    #[rstest]
    #[case::the_same("https://registry.test/x", false, true)]
    #[case::another_host("https://storage.test/x", false, false)]
    #[case::another_port("https://registry.test:444/x", false, false)]
    #[case::without_tls("http://registry.test:443/x", false, false)]
    #[case::a_name_that_begins_alike("https://registry.test.evil.test/x", false, false)]
    #[case::back_again("https://registry.test/x", true, false)]
    fn credentials_stay_at_home(#[case] next: &str, #[case] has_left: bool, #[case] expected: bool) {
        assert_eq!(carries(&at("https://registry.test/").origin, has_left, &at(next).origin), expected);
    }

    #[rstest]
    #[case::relative("/v2/a/referrers/x?n=2", true)]
    #[case::absolute("https://registry.test/v2/a/referrers/x?n=2", true)]
    #[case::another_list("/v2/b/referrers/x?n=2", false)]
    #[case::another_host("https://evil.test/v2/a/referrers/x?n=2", false)]
    fn pages_are_of_the_same_list(#[case] link: &str, #[case] expected: bool) {
        assert_eq!(page(&at("https://registry.test/v2/a/referrers/x"), link).is_ok(), expected);
    }

    #[rstest]
    #[case("8.8.8.8", Ok(Neighbourhood::Public))]
    #[case("2001:4860::1", Ok(Neighbourhood::Public))]
    #[case("127.0.0.1", Ok(Neighbourhood::Loopback))]
    #[case("127.9.9.9", Ok(Neighbourhood::Loopback))]
    #[case("::1", Ok(Neighbourhood::Loopback))]
    #[case("::ffff:127.0.0.1", Ok(Neighbourhood::Loopback))]
    #[case("10.0.0.1", Ok(Neighbourhood::Private))]
    #[case("172.31.0.1", Ok(Neighbourhood::Private))]
    #[case("172.32.0.1", Ok(Neighbourhood::Public))]
    #[case("192.168.1.1", Ok(Neighbourhood::Private))]
    #[case("100.64.0.1", Ok(Neighbourhood::Private))]
    #[case("fd12::1", Ok(Neighbourhood::Private))]
    #[case("10.96.0.10", Ok(Neighbourhood::Cluster))]
    #[case("203.0.113.7", Ok(Neighbourhood::Cluster))]
    #[case("fd00:10:96::5", Ok(Neighbourhood::Cluster))]
    #[case("::ffff:10.96.0.10", Ok(Neighbourhood::Cluster))]
    #[case("64:ff9b::10.96.0.10", Ok(Neighbourhood::Cluster))]
    #[case("2002:0a60:000a::1", Ok(Neighbourhood::Cluster))]
    #[case("0.0.0.0", Err("an unspecified address"))]
    #[case("::", Err("an unspecified address"))]
    #[case("::169.254.169.254", Err("an unspecified address"))]
    #[case("169.254.169.254", Err("a link-local address"))]
    #[case("::ffff:169.254.169.254", Err("a link-local address"))]
    #[case("64:ff9b::169.254.169.254", Err("a link-local address"))]
    #[case("fe80::1", Err("a link-local address"))]
    #[case("febf::1", Err("a link-local address"))]
    #[case("224.0.0.1", Err("a multicast address"))]
    #[case("ff02::1", Err("a multicast address"))]
    #[case("255.255.255.255", Err("a reserved address"))]
    #[case("fd00:ec2::254", Err("the metadata service of a cloud"))]
    #[case("100.100.100.200", Err("the metadata service of a cloud"))]
    #[case("168.63.129.16", Err("the metadata service of a cloud"))]
    fn addresses_have_neighbours(#[case] address: &str, #[case] expected: Result<Neighbourhood, &'static str>) {
        assert_eq!(neighbourhood(address.parse().unwrap(), &ranges()), expected);
    }

    #[rstest]
    #[case::storage_outside(&["8.8.8.8"], "9.9.9.9", true)]
    #[case::out_of_the_cluster(&["10.96.0.1"], "9.9.9.9", true)]
    #[case::into_a_private_network(&["8.8.8.8"], "10.0.0.1", false)]
    #[case::into_the_cluster(&["8.8.8.8"], "10.96.0.1", false)]
    #[case::into_this_machine(&["8.8.8.8"], "127.0.0.1", false)]
    #[case::to_the_metadata(&["8.8.8.8"], "169.254.169.254", false)]
    #[case::private_to_private(&["192.168.1.1"], "10.0.0.1", true)]
    #[case::private_into_the_cluster(&["192.168.1.1"], "10.96.0.1", false)]
    #[case::private_to_this_machine(&["192.168.1.1"], "127.0.0.1", false)]
    #[case::cluster_to_cluster(&["10.96.0.1"], "10.96.0.2", true)]
    #[case::loopback_to_loopback(&["127.0.0.1"], "127.0.0.2", true)]
    #[case::loopback_into_the_cluster(&["127.0.0.1"], "10.96.0.1", false)]
    #[case::private_to_the_metadata(&["fd12::1"], "fd00:ec2::254", false)]
    fn what_a_registry_leads_to_is_judged(#[case] registry: &[&str], #[case] next: &str, #[case] expected: bool) {
        let addresses: Vec<IpAddr> = registry.iter().map(|text| text.parse().unwrap()).collect();
        let own = judge("registry.test", &addresses, &ranges(), Standing::Named { is_listed: true }).unwrap();
        let next = [IpAddr::from([9, 9, 9, 9]), next.parse().unwrap()];
        assert_eq!(judge("next.test", &next, &ranges(), Standing::Led(&own)).is_ok(), expected);
    }

    #[test]
    fn no_registry_is_where_none_can_be() {
        for address in ["169.254.170.2", "0.0.0.0", "fd00:ec2::254", "ff02::1"] {
            let judged = judge("registry.test", &[address.parse().unwrap()], &[], Standing::Named { is_listed: true });
            assert!(matches!(judged, Err(Refusal::Address { .. })), "{address}");
        }
    }

    #[rstest]
    #[case("127.0.0.1", false)]
    #[case("::ffff:127.0.0.1", false)]
    #[case("10.96.0.1", true)]
    #[case("192.168.1.1", true)]
    fn this_machine_is_for_registries_that_are_listed(#[case] address: &str, #[case] expected: bool) {
        let address = [address.parse().unwrap()];
        let judged = |is_listed| judge("registry.test", &address, &ranges(), Standing::Named { is_listed }).is_ok();
        assert_eq!((judged(false), judged(true)), (expected, true));
    }

    #[rstest]
    #[case("10.0.0.0/8", "10.255.255.255", true)]
    #[case("10.0.0.0/8", "11.0.0.0", false)]
    #[case("0.0.0.0/0", "255.1.1.1", true)]
    #[case("10.0.0.1/32", "10.0.0.1", true)]
    #[case("10.0.0.1/32", "10.0.0.2", false)]
    #[case("::/0", "fd00::1", true)]
    #[case("::/0", "10.0.0.1", false)]
    #[case("fd00::/64", "fd00:0:0:1::", false)]
    fn ranges_contain(#[case] range: &str, #[case] address: &str, #[case] expected: bool) {
        assert_eq!(range.parse::<Range>().unwrap().contains(address.parse().unwrap()), expected);
    }

    #[rstest]
    #[case("10.0.0.0")]
    #[case("10.0.0.0/33")]
    #[case("::/129")]
    #[case("x/8")]
    #[case("10.0.0.0/-1")]
    fn other_texts_are_no_ranges(#[case] text: &str) {
        assert_eq!(text.parse::<Range>(), Err(InvalidRange));
    }

    proptest! {
        #[test]
        fn no_redirect_brings_it_down_or_loses_tls(location in "\\PC{0,80}") {
            if let Ok(hop) = redirect(&at("https://registry.test/v2/"), &location) {
                prop_assert!(hop.origin.tls && hop.path.starts_with('/'));
            }
        }
    }
}
