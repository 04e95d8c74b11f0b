//! Waiting with an end: what is waited for is said when it does not come.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(100);

/// Looks until there is something, at most so many seconds. A look that fails is a look that found nothing; the last such failure is
/// told at the end.
pub async fn until<T>(what: &str, seconds: u64, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut failure = String::new();
    loop {
        match look().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => failure.clear(),
            Err(error) => failure = format!(" ({error:#})"),
        }
        if Instant::now() > end {
            bail!("waited {seconds} s for {what}{failure}");
        }
        sleep(PERIOD).await;
    }
}

/// The same for what is only true or not.
pub async fn until_so(what: &str, seconds: u64, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    until(what, seconds, async || Ok(is_so().await?.then_some(()))).await
}
