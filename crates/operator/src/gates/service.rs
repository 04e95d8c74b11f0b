//! A Service that is asked over HTTP: where it is, and who may ask it.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use k8s_openapi::api::core::v1::{Secret, Service};
use kube::Api;
use windlass_api::gates::ServiceRef;
use windlass_systems::transport::{Peer, Transport};

use super::Asker;
use crate::{Context, dial::TlsMaterial, live::get};

/// What it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A query of Prometheus, which changes nothing.
    Query,
    /// A POST to a path of the author's choice: what listens at another port, or at another path, may take it for an order (H41).
    Post,
}

/// Whether whoever started the operator let everybody ask this Service.
fn is_allowed(allowed: &BTreeSet<String>, service: &str, port: i32, purpose: Purpose) -> bool {
    allowed.contains(&format!("{service}:{port}")) || (purpose == Purpose::Query && allowed.contains(service))
}

/// How the Service is reached. The error is for a person.
pub async fn reach(
    context: &Context,
    asker: &Asker,
    service: &ServiceRef,
    purpose: Purpose,
) -> Result<(Peer, Arc<dyn Transport>), String> {
    let ServiceRef { name, namespace, port, path: _, ca_secret } = service;
    let own = &asker.maker.namespace;
    let namespace = namespace.as_ref().unwrap_or(own);
    let whole = format!("{namespace}/{name}");
    if namespace != own && !is_allowed(&context.settings.allowed_services, &whole, *port, purpose) {
        let needed = match purpose {
            Purpose::Query => whole.clone(),
            Purpose::Post => format!("{whole}:{port}"),
        };
        return Err(format!(
            "Service {whole} is in another namespace, and the operator was not started with --allow-service {needed}"
        ));
    }
    let api: Api<Service> = Api::namespaced(context.client.clone(), namespace);
    let found = get(context, &format!("services/{whole}"), &api, name).await.map_err(|error| error.story())?;
    let found = found.ok_or_else(|| format!("there is no Service {whole}"))?;
    let address = found.spec.and_then(|spec| spec.cluster_ip).and_then(|address| address.parse::<IpAddr>().ok());
    let address = address.ok_or_else(|| format!("Service {whole} has no cluster address"))?;
    let port = u16::try_from(*port).map_err(|_| format!("{port} is no port"))?;
    let tls = match ca_secret {
        None => None,
        Some(secret) => Some(trusted(context, own, secret).await?),
    };
    let server_name = format!("{name}.{namespace}.svc");
    let peer = Peer { pod: format!("Service {whole}"), address, port, server_name, tls: tls.is_some() };
    Ok((peer, context.dial.transport(tls.as_ref())?))
}

async fn trusted(context: &Context, namespace: &str, name: &str) -> Result<TlsMaterial, String> {
    let api: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let found =
        get(context, &format!("secrets/{namespace}/{name}"), &api, name).await.map_err(|error| error.story())?;
    let roots = found.and_then(|secret| secret.data?.remove("ca.crt"));
    let roots = roots.ok_or_else(|| format!("caSecret: there is no Secret {name} with ca.crt in it"))?;
    Ok(TlsMaterial { roots: roots.0, identity: None })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Purpose, is_allowed};

    /// H41: who lets everybody query a Service has not let everybody send orders to it.
    #[rstest]
    #[case::a_query("monitoring/prometheus", Purpose::Query, true)]
    #[case::an_order("monitoring/prometheus", Purpose::Post, false)]
    #[case::a_query_at_the_port("monitoring/prometheus:9090", Purpose::Query, true)]
    #[case::an_order_at_the_port("monitoring/prometheus:9090", Purpose::Post, true)]
    #[case::an_order_at_another_port("monitoring/prometheus:8080", Purpose::Post, false)]
    #[case::another_service("monitoring/alertmanager", Purpose::Query, false)]
    fn what_an_entry_allows(#[case] entry: &str, #[case] purpose: Purpose, #[case] expected: bool) {
        let allowed = [entry.to_owned()].into();
        assert_eq!(is_allowed(&allowed, "monitoring/prometheus", 9090, purpose), expected);
    }
}
