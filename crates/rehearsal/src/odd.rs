//! What the API server takes and nobody here can read.

use serde_json::{Value, json};

/// The API server's check of a date-time lets this through.
pub const TIME: &str = "2030-01-01T00:00:00+99:99";

/// Go reads and writes this day, and the API server stores it; our library of times ends a day before.
pub const LAST_DAY: &str = "9999-12-31T23:59:59Z";

/// `spec.gates` with such a time, in an override of this gate.
pub fn gates(gate: &str) -> Value {
    json!({"overrides": [{"gate": gate, "until": TIME}]})
}

/// Who wrote a resource of this version, and on that day.
pub fn managed_fields(api_version: &str) -> Value {
    json!([{
        "manager": "somebody", "operation": "Update", "apiVersion": api_version, "time": LAST_DAY,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}},
    }])
}
