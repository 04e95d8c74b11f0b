//! Where the demo is shown: a picture that is drawn over the last one, or plain lines.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write},
    time::Duration,
};

use anyhow::Result;

use crate::demo::{Arguments, Output};

/// How wide plain lines are, and a terminal that does not say.
const WIDTH: usize = 80;
/// The terminal cuts lines off instead of wrapping them, so that a picture is as high as it was drawn.
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// The person's terminal, or whatever takes the output.
pub struct Screen {
    /// Pictures are drawn.
    pub live: bool,
    /// Nothing is shown.
    pub quiet: bool,
    /// How many times faster than the person's the cluster's time is.
    pub speed: f64,
    /// How many lines the last picture had.
    height: usize,
}

impl Screen {
    pub fn new(arguments: &Arguments) -> Self {
        let quiet = arguments.output == Some(Output::Json);
        let live = !arguments.no_tty && !quiet && std::io::stdout().is_terminal();
        Self { live, quiet, speed: arguments.speed, height: 0 }
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        let size = if self.live { terminal_size::terminal_size() } else { None };
        size.map_or(WIDTH, |(width, _)| usize::from(width.0))
    }

    /// Waits for the next look, in the cluster's time: ten pictures a second of the person's time, at least five looks a second of the
    /// cluster's.
    pub async fn rest(&self) {
        let step = if self.live { Duration::from_millis(100).mul_f64(self.speed) } else { Duration::from_millis(200) };
        tokio::time::sleep(step.max(Duration::from_millis(20))).await;
    }

    /// Draws the picture over the last one, the news scrolling away above it.
    pub fn draw(&mut self, news: &[String], picture: &[String]) -> Result<()> {
        let mut text = String::new();
        if self.height > 0 {
            // Writing to a string does not fail.
            let _never = write!(text, "\x1b[{}A\x1b[J", self.height);
        }
        for line in news {
            text.extend([line, "\n"]);
        }
        text.push_str(CUT);
        for line in picture {
            text.extend([line, "\n"]);
        }
        text.push_str(WRAP);
        // At once: it does not flicker, and nobody who ends it finds a terminal that cuts lines off.
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        self.height = picture.len();
        Ok(())
    }

    /// Plain lines, unless nothing is shown.
    pub fn print<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let mut out = anstream::stdout().lock();
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}
