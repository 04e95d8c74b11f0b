//! Which parameters of a list or a watch go together.

use super::error::{self, Answer, FieldError};
use super::query::{Match, Query};

const MATCH: &str = "resourceVersionMatch";

/// Refuses what contradicts itself, all of it at once.
pub(super) fn check(query: &Query) -> Answer<()> {
    let faults = if query.watch { of_watch(query) } else { of_list(query) };
    if faults.is_empty() {
        return Ok(());
    }
    Err(error::invalid(error::Named { group: "meta.k8s.io", what: "ListOptions" }, "", &faults))
}

fn of_list(query: &Query) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if query.revision_match != Match::Unset {
        if query.revision.is_empty() {
            faults.push(FieldError::forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        faults.extend(beside_continue(query));
        if let Match::Unknown(text) = &query.revision_match {
            let supported = ["Exact", "NotOlderThan", ""];
            faults.push(FieldError::not_supported(MATCH, text.as_str().into(), &supported));
        }
        if query.revision_match == Match::Exact && query.revision == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            faults.push(FieldError::forbidden(MATCH, why));
        }
    }
    if query.initial_events.is_some() {
        faults.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    faults
}

fn of_watch(query: &Query) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let found = &query.revision_match;
    if query.initial_events.is_some() && *found != Match::NotOlderThan {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        faults.push(FieldError::forbidden(MATCH, why));
    }
    let text = match found {
        Match::Unset if begins_with_everything(query) => {
            faults.extend(beside_continue(query));
            return faults;
        }
        Match::Unset => return faults,
        Match::NotOlderThan => "NotOlderThan",
        Match::Exact => "Exact",
        Match::Unknown(text) => text,
    };
    if query.initial_events.is_none() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        faults.push(FieldError::forbidden(MATCH, why));
    }
    if *found != Match::NotOlderThan {
        faults.push(FieldError::not_supported(MATCH, text.into(), &["NotOlderThan"]));
    }
    faults.extend(beside_continue(query));
    faults
}

/// A watch from no revision in particular is one that asked for the present state first.
pub(super) fn begins_with_everything(query: &Query) -> bool {
    query.initial_events.unwrap_or(matches!(query.revision.as_str(), "" | "0"))
}

fn beside_continue(query: &Query) -> Option<FieldError> {
    let why = "resourceVersionMatch is forbidden when continue is provided";
    (!query.resume.is_empty()).then(|| FieldError::forbidden(MATCH, why))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // What a real server said to the same parameters.
    #[rstest]
    #[case("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "")]
    #[case("watch=1&resourceVersion=5", "")]
    #[case(
        "watch=1&sendInitialEvents=true",
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    )]
    #[case(
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5",
        "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, \
         resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"
    )]
    #[case(
        "watch=1&resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    )]
    #[case(
        "watch=1&continue=abc",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
    )]
    #[case("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")]
    #[case(
        "resourceVersionMatch=Bad",
        "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, \
         resourceVersionMatch: Unsupported value: \"Bad\": supported values: \"Exact\", \"NotOlderThan\", \"\"]"
    )]
    fn contradictions_are_refused(#[case] query: &str, #[case] message: &str) {
        let said = check(&Query::parse(&http::Method::GET, query).unwrap())
            .err()
            .map(|status| status.message)
            .unwrap_or_default();
        let expected = if message.is_empty() {
            String::new()
        } else {
            format!("ListOptions.meta.k8s.io \"\" is invalid: {message}")
        };
        assert_eq!(said, expected);
    }
}
