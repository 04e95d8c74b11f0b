//! Who acts on a resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_plan::{
    Hold,
    fence::{Identity, Operator, Recorded},
};

use super::invalid;
use crate::status::OperatorClaim;

/// Who acts, from the status.
pub fn operator(written: &OperatorClaim) -> Result<Operator, Hold> {
    let term = u64::try_from(written.term).map_err(|error| invalid("status.operator.term", &error))?;
    Ok(Operator {
        identity: Identity::new(&written.identity),
        term,
        since: written.since.0,
        predecessor_done: written.predecessor_done,
    })
}

/// Who acts on a resource whose status says this. Where it tells of acts, somebody has acted, whether or not the claim is still there.
pub fn recorded(written: Option<&OperatorClaim>, tells_of_acts: bool) -> Recorded {
    match written.map(operator).transpose() {
        Ok(Some(operator)) => Recorded::By(operator),
        Ok(None) if !tells_of_acts => Recorded::Nobody,
        Ok(None) | Err(_) => Recorded::Unreadable,
    }
}

/// Who acts, for the status.
pub fn written_operator(operator: &Operator) -> OperatorClaim {
    OperatorClaim {
        identity: operator.identity.to_string(),
        term: i64::try_from(operator.term).unwrap_or(i64::MAX),
        since: MicroTime(operator.since),
        predecessor_done: operator.predecessor_done,
    }
}
