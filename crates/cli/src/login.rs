//! As whom Windlass logs in to OpenBao and Vault.

use clap::Args;
use windlass_operator::members::account::Tokens;

use crate::access::CONNECTION;

/// The flag that says so.
#[derive(Args)]
pub struct Login {
    /// The ServiceAccount that logs in to OpenBao and Vault where spec.system.auth asks for a login. Windlass needs the right to create
    /// serviceaccounts/token for it
    #[arg(help_heading = CONNECTION, long, value_name = "NAMESPACE/NAME", default_value = "windlass-system/windlass", value_parser = account)]
    login_account: (String, String),
}

impl Login {
    /// Where its tokens come from.
    pub fn tokens(&self) -> Tokens {
        let (namespace, account) = self.login_account.clone();
        Tokens::Requested { namespace, account }
    }
}

fn account(text: &str) -> Result<(String, String), String> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(((*namespace).to_owned(), (*name).to_owned()))
        }
        _ => Err("it must be NAMESPACE/NAME".to_owned()),
    }
}
