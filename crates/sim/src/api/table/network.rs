//! Services and the endpoints behind them.

use serde_json::{Value, json};

use super::super::object;
use super::{AGE, Column, NAME, NONE, Seen, list, or_none, text, wide};

pub(super) const SERVICE: &[Column] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, wide("Selector")];

pub(super) const ENDPOINTS: &[Column] = &[NAME, text("Endpoints"), AGE];

pub(super) const SLICE: &[Column] = &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE];

/// As many of a list are shown in one cell.
const SHOWN: usize = 3;

pub(super) fn service(seen: Seen<'_>) -> Vec<Value> {
    let addresses = seen.list(&["spec", "clusterIPs"]);
    vec![
        json!(seen.name()),
        json!(seen.text(&["spec", "type"])),
        json!(addresses.first().and_then(Value::as_str).unwrap_or(NONE)),
        json!(external(seen)),
        json!(or_none(&ports(seen.list(&["spec", "ports"])))),
        json!(seen.age()),
        json!(selector(seen)),
    ]
}

fn external(seen: Seen<'_>) -> String {
    let given: Vec<&str> = seen.list(&["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match seen.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or_none(&given.join(",")).to_owned(),
        "ExternalName" => seen.text(&["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = seen.list(&["status", "loadBalancer", "ingress"]).iter();
            let mut all: Vec<&str> = ingress
                .map(|one| match object::text(one, &["ip"]) {
                    "" => object::text(one, &["hostname"]),
                    ip => ip,
                })
                .filter(|address| !address.is_empty())
                .collect();
            all.sort_unstable();
            all.dedup();
            all.extend(given);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ => "<unknown>".to_owned(),
    }
}

fn ports(ports: &[Value]) -> String {
    let shown = ports.iter().map(|port| {
        let (number, protocol) = (object::integer(port, &["port"]).unwrap_or(0), object::text(port, &["protocol"]));
        match object::integer(port, &["nodePort"]).filter(|outside| *outside > 0) {
            Some(outside) => format!("{number}:{outside}/{protocol}"),
            None => format!("{number}/{protocol}"),
        }
    });
    shown.collect::<Vec<String>>().join(",")
}

fn selector(seen: Seen<'_>) -> String {
    let labels = object::at(seen.object, &["spec", "selector"]).and_then(Value::as_object);
    let pairs = labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")));
    or_none(&pairs.collect::<Vec<String>>().join(",")).to_owned()
}

/// The first few of a list, and how many more there are.
fn few(all: &[String], unset: &str) -> String {
    if all.is_empty() {
        return unset.to_owned();
    }
    match all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{} + {more} more...", all.get(..SHOWN).unwrap_or_default().join(",")),
        None => all.join(","),
    }
}

pub(super) fn endpoints(seen: Seen<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    let subsets = seen.list(&["subsets"]);
    for subset in subsets {
        let addresses = || list(subset, &["addresses"]).iter().map(|address| object::text(address, &["ip"]));
        let ports = list(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let number = object::integer(port, &["port"]).unwrap_or(0);
            all.extend(addresses().map(|address| format!("{address}:{number}")));
        }
    }
    let shown = few(&all, if subsets.is_empty() { NONE } else { "" });
    vec![json!(seen.name()), json!(shown), json!(seen.age())]
}

pub(super) fn slice(seen: Seen<'_>) -> Vec<Value> {
    let ports: Vec<String> = seen
        .list(&["ports"])
        .iter()
        .map(|port| match (object::integer(port, &["port"]), object::at(port, &["name"]).and_then(Value::as_str)) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = seen
        .list(&["endpoints"])
        .iter()
        .flat_map(|endpoint| list(endpoint, &["addresses"]))
        .map(|address| address.as_str().unwrap_or("").to_owned())
        .collect();
    vec![
        json!(seen.name()),
        json!(seen.text(&["addressType"])),
        json!(few(&ports, "<unset>")),
        json!(few(&addresses, "<unset>")),
        json!(seen.age()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH;

    #[test]
    fn a_headless_service_has_no_address() {
        let object = json!({
            "metadata": {"name": "pd"},
            "spec": {"type": "ClusterIP", "clusterIPs": ["None"], "selector": {"app": "pd"}, "ports": [
                {"port": 2379, "protocol": "TCP"}, {"port": 80, "nodePort": 30080, "protocol": "TCP"},
            ]},
        });
        let cells = service(Seen { object: &object, now: EPOCH });
        assert_eq!(
            json!(cells),
            json!(["pd", "ClusterIP", "None", "<none>", "2379/TCP,80:30080/TCP", "<unknown>", "app=pd"])
        );
    }

    #[test]
    fn a_slice_shows_three_addresses_and_counts_the_rest() {
        let endpoint = |address: &str| json!({"addresses": [address]});
        let object = json!({
            "metadata": {"name": "s"}, "addressType": "IPv4", "ports": [{"port": 1}, {"name": "x"}, {}],
            "endpoints": [endpoint("a"), endpoint("b"), endpoint("c"), endpoint("d"), endpoint("e")],
        });
        let cells = slice(Seen { object: &object, now: EPOCH });
        assert_eq!(json!(cells), json!(["s", "IPv4", "1,x,*", "a,b,c + 2 more...", "<unknown>"]));
        let empty = slice(Seen { object: &json!({}), now: EPOCH });
        assert_eq!(empty[3], "<unset>");
    }
}
