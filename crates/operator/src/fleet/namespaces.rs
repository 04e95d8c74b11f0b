//! The namespaces that a ServiceImage is about.

use std::collections::BTreeSet;

use futures::{StreamExt, channel::mpsc};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams};
use tokio::time::Instant;

use super::watch::{Told, Watch, believed_until};
use crate::{actor::Actor, error::Error, lenient::Glimpse};

/// Which namespaces; all of them without a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(Option<Selected>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Selected {
    selector: String,
    names: BTreeSet<String>,
}

impl Namespaces {
    /// Reads who has these labels now.
    pub async fn read(actor: Actor<'_>, selector: Option<&String>) -> Result<Self, Error> {
        let Some(selector) = selector else { return Ok(Self(None)) };
        let context = actor.context;
        let params = ListParams::default().labels(selector);
        let api: Api<Glimpse<Namespace>> = Api::all(context.client.clone());
        let listed = context.bounded(context.settings.read_deadline, "list", "namespaces", api.list(&params)).await?;
        let names = listed.items.iter().map(ResourceExt::name_any).collect();
        Ok(Self(Some(Selected { selector: selector.clone(), names })))
    }

    /// Whether it is about this one.
    pub fn contains(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.names.contains(namespace))
    }

    /// Waits until others have these labels than had them, or nobody can tell any more who has.
    pub async fn changed(&self, actor: Actor<'_>) {
        let Some(selected) = &self.0 else { return std::future::pending().await };
        let context = actor.context;
        let api: Api<Glimpse<Namespace>> = Api::all(context.client.clone());
        let (seen, mut told) = mpsc::unbounded();
        let watch = Watch::new(context, "namespaces", api, Some(&selected.selector), |one| {
            // Nobody listens any more only when nobody reads this, either.
            let _unheard = seen.unbounded_send(one);
        });
        let differs = async {
            let (mut listed, mut heard) = (BTreeSet::new(), Instant::now());
            while let Some(one) = told.next().await {
                let alive = !matches!(one, Told::Begun | Told::Listed(_) | Told::Broke(_));
                let differs = match one {
                    Told::Begun => {
                        listed.clear();
                        false
                    }
                    Told::Listed(namespace) => {
                        listed.insert(namespace.name_any());
                        false
                    }
                    Told::Whole(_) => listed != selected.names,
                    Told::Changed(namespace) => !selected.names.contains(&namespace.name_any()),
                    Told::Gone(_) | Told::WentBack => true,
                    Told::Alive => false,
                    Told::Broke(error) => {
                        tracing::debug!(error = error.story(), "a watch broke off");
                        believed_until(context, heard) <= Instant::now()
                    }
                };
                if differs {
                    return;
                }
                if alive {
                    heard = Instant::now();
                }
            }
        };
        tokio::select! {
            biased;
            () = differs => {}
            () = watch.run() => {}
        }
    }
}
