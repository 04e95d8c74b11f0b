//! Names of fields that only look like the known ones.
//!
//! Container runtimes are written in Go, whose JSON reader takes `Layers`, `LAYERS` and even `layerſ` for `layers`; ours does not. A document
//! that has such a name would be read in one way here and in another on the node, so it is refused. No tool writes one.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::document::{Unreadable, cut};

/// Every field of a document that is looked at.
const KNOWN: [&str; 14] = [
    "schemaVersion",
    "mediaType",
    "manifests",
    "config",
    "layers",
    "artifactType",
    "subject",
    "annotations",
    "digest",
    "size",
    "platform",
    "os",
    "architecture",
    "variant",
];

/// Below this, names are anybody's.
const FREE: &str = "annotations";

/// How a name of ours that is refused starts in the reader's error, which carries only text.
const MARK: &str = "look-alike ";

/// Refuses a document with such a name, at any depth.
pub(super) fn check(bytes: &[u8]) -> Result<(), Unreadable> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Walk.deserialize(&mut reader).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix(MARK) {
            Some(rest) => Unreadable::LookAlike(cut(rest.rsplit_once(" at line ").map_or(rest, |(name, _)| name))),
            None => Unreadable::Form(cut(&text)),
        }
    })
}

/// The letters that Go takes for one another.
fn folded(name: &str) -> String {
    let fold = |c: char| match c {
        'ſ' => 's',
        'K' => 'k',
        other => other.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

fn is_look_alike(name: &str) -> bool {
    let folded = folded(name);
    KNOWN.iter().any(|known| *known != name && known.eq_ignore_ascii_case(&folded))
}

struct Walk;

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if is_look_alike(&name) {
                return Err(A::Error::custom(format!("{MARK}{name:?}")));
            }
            if name == FREE {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Self)?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
