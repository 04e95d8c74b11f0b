//! The namespaces that a ServiceImage is about.

use std::{collections::BTreeSet, pin::pin};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::ListParams,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};

use crate::{controller::Steady, error::Error, execute::Actor};

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
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
        let listed = context.bounded(context.settings.read_deadline, "list", "namespaces", api.list(&params)).await?;
        let names = listed.items.iter().map(ResourceExt::name_any).collect();
        Ok(Self(Some(Selected { selector: selector.clone(), names })))
    }

    /// Whether it is about this one.
    pub fn contains(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.names.contains(namespace))
    }

    /// Waits until others have these labels than had them.
    pub async fn changed(&self, actor: Actor<'_>) {
        let Some(selected) = &self.0 else { return std::future::pending().await };
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(actor.context.client.clone());
        let config = watcher::Config::default().labels(&selected.selector);
        let mut events = pin!(watcher::watcher(api, config).backoff(Steady::default()));
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let differs = match event {
                Ok(Event::Init) => {
                    listed.clear();
                    false
                }
                Ok(Event::InitApply(namespace)) => {
                    listed.insert(namespace.name_any());
                    false
                }
                Ok(Event::InitDone) => listed != selected.names,
                Ok(Event::Apply(namespace)) => !selected.names.contains(&namespace.name_any()),
                Ok(Event::Delete(_)) => true,
                Err(error) => {
                    tracing::debug!(%error, "a watch broke off");
                    false
                }
            };
            if differs {
                return;
            }
        }
    }
}
