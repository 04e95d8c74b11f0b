//! Who else is there in a walk: another ServiceImage of the kind, and whoever keeps a resource from being written.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{
    rng::Rng,
    scenario::{Action, Moment, Webhook, When},
};

use super::{IMAGE, STAMP, TOUCHED, fill, freeze, rival, service_image, webhook};

/// Another ServiceImage of the same kind.
#[derive(Clone, Copy)]
pub(super) enum Company {
    /// There is none.
    None,
    /// It wants the same Dicoms, and its name makes it the older of two of one second, or the younger.
    Same(&'static str),
    /// It has the older name and an image elsewhere.
    Elsewhere,
    /// Each has a zone of its own.
    Apart,
}

impl Company {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0 => Self::Same("a-rival"),
            1 => Self::Same("rival"),
            2 => Self::Elsewhere,
            3 => Self::Apart,
            _ => Self::None,
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Same(name) => Some(name),
            Self::Elsewhere => Some("a-rival"),
            Self::Apart => Some("rival"),
        }
    }

    /// What it changes of the ServiceImage that the walk is about.
    pub(super) fn make_room(self, wanted: &mut Value) {
        if matches!(self, Self::Apart) {
            wanted["spec"]["target"]["labelSelector"] = json!("managed!=no,zone=a");
        }
    }

    /// It is there at once, or later.
    pub(super) fn comes(self, rng: &mut Rng, tiers: Value) -> Vec<Moment> {
        let Some(name) = self.name() else { return Vec::new() };
        let mut rival = service_image(tiers);
        rival["metadata"]["name"] = json!(name);
        let target = &mut rival["spec"]["target"];
        target["labelSelector"] = json!("managed!=no");
        match self {
            Self::None | Self::Same(_) => {}
            Self::Elsewhere => target["imagePath"] = json!(".spec.sidecar"),
            Self::Apart => target["labelSelector"] = json!("managed!=no,zone=b"),
        }
        let when = if rng.one_in(2) { Duration::from_millis(10) } else { Duration::from_secs(rng.below(60)) };
        vec![Moment { when: When::After(when), action: Action::Create(rival) }]
    }

    /// In the end it leaves what it has.
    pub(super) fn goes(self) -> Vec<Moment> {
        self.name().map(|name| soon(Action::Delete(rival(name)))).into_iter().collect()
    }
}

fn soon(action: Action) -> Moment {
    Moment { when: When::After(Duration::from_millis(10)), action }
}

/// Dicoms that can't be written.
#[derive(Default)]
pub(super) struct Unwritable {
    /// What makes them so.
    pub(super) broken: Vec<Moment>,
    /// What mends those whose failure halts everybody. The others stay as they are.
    pub(super) mended: Vec<Moment>,
    /// Webhooks work again. Nothing that is deleted goes before that.
    pub(super) answered: Vec<Moment>,
}

/// Some of the Dicoms can't be written, by admission that denies stamps, touches or both, because their annotations are at their limit, or
/// because a webhook goes wrong and nobody knows what became of the write.
pub(super) fn unwritable(rng: &mut Rng, dicoms: &[Value]) -> Unwritable {
    let Unwritable { mut broken, mut mended, mut answered } = Unwritable::default();
    for dicom in dicoms {
        let name = dicom["metadata"]["name"].as_str().unwrap_or_default();
        if !rng.one_in(3) {
            continue;
        }
        let about = if rng.one_in(3) { STAMP } else { "" };
        broken.push(soon(match rng.below(6) {
            0 => freeze(name, &[IMAGE]),
            1 => freeze(name, &[TOUCHED]),
            2 => freeze(name, &[IMAGE, TOUCHED]),
            3 => webhook(name, Some(Webhook::Hangs), about),
            4 => webhook(name, Some(Webhook::Breaks), about),
            _ => fill(name, true),
        }));
        answered.push(soon(webhook(name, None, "")));
        if dicom["spec"]["failureHaltsUpdate"] == true {
            mended.extend([soon(freeze(name, &[])), soon(fill(name, false))]);
        }
    }
    Unwritable { broken, mended, answered }
}
