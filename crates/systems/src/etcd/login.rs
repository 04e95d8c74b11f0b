//! A token in exchange for a user's name and password.
//!
//! The token is of a kind that the server chose: a simple one lives for five minutes after its last use at a member, and is forgotten by a
//! member that is restarted; a JWT lives as long as it says. Nobody is told which it is, so it is used until it is refused. The request
//! goes through the quorum, and afterwards every member knows the token.

use serde_json::{Value, json};

use crate::{
    call::{CallError, Timeouts, call},
    gateway,
    secret::{Password, Secret},
    transport::{Peer, Transport},
};

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub name: String,
    /// And password.
    pub password: Password,
}

/// Asks a pod for a token; none where authentication is switched off, so that nobody needs one. A name or password that the server does not
/// accept is an error of the class [`Denied`](crate::Class::Denied).
pub async fn login(
    transport: &dyn Transport,
    peer: &Peer,
    login: &Login,
    timeouts: &Timeouts,
) -> Result<Option<Secret>, CallError> {
    let Login { name, password } = login;
    let body = json!({"name": name, "password": password.reveal()}).to_string();
    let request = gateway::post("/v3/auth/authenticate", body);
    let reply = call(transport, peer, request, timeouts.read).await?.hiding(password.reveal());
    if reply.status().as_u16() == 400 && reply.says("authentication is not enabled") {
        return Ok(None);
    }
    // Read as any JSON: what a parser says of another kind may repeat it.
    let token = reply.read(|answer: Value| {
        let token = answer["token"].as_str().ok_or_else(|| "there is no token in it".to_owned())?;
        Secret::new(token).map_err(|error| error.to_string())
    });
    token.map(Some).map_err(|error| error.denied_if(|text| text.contains("authentication failed")))
}
