//! etcd's authentication, enabled under way.

use anyhow::{Result, ensure};
use serde_json::json;

use super::tls;
use crate::{client::ROOT, say, scenario::trial::Trial};

/// The Secret with the user.
const SECRET: &str = "etcd-user";

/// Enabled: nobody is told anything. A user is named: all goes as ever, although every member that restarts forgets the token.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let (name, password) = ROOT;
    trial.resource.change(json!({"system": tls::system()})).await?;
    trial.resource.ready_at(&trial.pair()?.old.version, 60).await?;
    trial.client().enable_authentication(trial.address(&trial.application.pod(0))?).await?;
    trial.resource.waits_for(&["TokenRefused"], 60).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("TokenRefused: {message}"));
    trial.notes.push(message);
    trial.more_writes(40).await?;
    trial.create(&[json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "metadata": {"name": SECRET},
        "stringData": {"username": name, "password": password},
    })])?;
    trial.resource.change(json!({"system": {"auth": {"passwordSecret": SECRET}}})).await?;
    trial.resource.ready_at(&trial.pair()?.old.version, 60).await?;
    trial.ask_for_new().await?;
    trial.finish(300).await?;
    let shown = trial.resource.whole().await?.to_string();
    ensure!(!shown.contains(password), "the password is in the resource");
    Ok(())
}
