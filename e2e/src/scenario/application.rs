//! What differs from application to application in a scenario.

use serde_json::{Value, json};

use super::{etcd, openbao, pd};
use crate::client::Application;

impl Application {
    /// The StatefulSet, its container and the QuorumCluster all have this name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => etcd::set::NAME,
            Self::OpenBao => openbao::set::NAME,
            Self::Pd => pd::set::NAME,
        }
    }

    /// Where clients speak to a member.
    pub fn port(self) -> u16 {
        match self {
            Self::Etcd => etcd::set::PORT,
            Self::OpenBao => openbao::set::PORT,
            Self::Pd => pd::set::PORT,
        }
    }

    /// The pod of this ordinal.
    pub fn pod(self, ordinal: usize) -> String {
        format!("{}-{ordinal}", self.name())
    }

    /// `spec.system` of its QuorumCluster.
    pub fn system(self) -> Value {
        match self {
            Self::Etcd => json!({"type": "Etcd", "port": self.port()}),
            Self::OpenBao => {
                json!({"type": "OpenBao", "port": self.port(), "auth": {"tokenSecret": openbao::set::TOKEN_SECRET, "allowPlaintext": true}})
            }
            Self::Pd => json!({"type": "Pd", "port": self.port()}),
        }
    }

    /// Everything that people apply to run it. Every member keeps its data in a folder of its own below `data`, on the node.
    pub fn objects(self, namespace: &str, replicas: usize, image: &str, data: &str) -> Vec<Value> {
        match self {
            Self::Etcd => etcd::set::objects(namespace, replicas, image, data).into(),
            Self::OpenBao => openbao::set::objects(replicas, image, data),
            Self::Pd => pd::set::objects(namespace, replicas, image, data).into(),
        }
    }
}
