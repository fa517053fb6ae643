//! Server-sent events: each line a frame, comments while nothing happens, `eof` at the end.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, Stream};

use super::source::{Sections, frame, render};
use crate::Deps;

/// How often the log is looked at.
const POLL: Duration = Duration::from_millis(500);

/// Looks without a line after which a comment keeps the connection open: 15 s.
const QUIET_LOOKS: u32 = 30;

/// Looks without a line between two looks at whether the run goes on.
const RUN_LOOKS: u32 = 4;

/// What clients take as the end of the log.
const END: &[u8] = b"event: error\ndata: eof\n\n";

/// Where a stream stands.
struct Cursor {
    deps: Deps,
    sections: std::vec::IntoIter<super::source::Section>,
    open: Option<(super::source::Section, u64)>,
    position: usize,
    quiet: u32,
    /// Looks that are left before the client must come again.
    looks: u64,
    ended: bool,
}

/// The events of the units that a key names, until they are closed or the time of a stream is over.
pub(super) fn events(
    deps: Deps,
    sections: Sections,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let looks = u64::try_from(deps.stream_limit.as_millis() / POLL.as_millis()).unwrap_or(1);
    let cursor = Cursor {
        deps,
        sections: sections.0.into_iter(),
        open: None,
        position: 0,
        quiet: 0,
        looks: looks.max(1),
        ended: false,
    };
    stream::unfold(cursor, |cursor| async move {
        if cursor.ended {
            return None;
        }
        let (bytes, cursor) = next(cursor).await;
        Some((Ok(bytes), cursor))
    })
}

async fn next(mut cursor: Cursor) -> (Bytes, Cursor) {
    loop {
        let current = match cursor.open.take() {
            Some(open) => Some(open),
            None => cursor.sections.next().map(|section| (section, 0)),
        };
        let Some((section, after)) = current else {
            cursor.ended = true;
            return (Bytes::from_static(END), cursor);
        };
        let read = cursor
            .deps
            .store
            .read_log(&section.run, &section.node, &section.unit, after);
        let (lines, next, closed) = match read.await {
            Ok(read) => (read.lines, read.next, read.closed),
            Err(error) => {
                tracing::warn!(%error, "a log stream ended early");
                cursor.ended = true;
                return (Bytes::from_static(END), cursor);
            }
        };
        if !lines.is_empty() {
            let mut bytes = Vec::new();
            for line in &lines {
                bytes.extend_from_slice(&frame(&render(line, &mut cursor.position)));
            }
            cursor.quiet = 0;
            cursor.open = Some((section, next));
            return (Bytes::from(bytes), cursor);
        }
        // A unit that never began is never closed; the end of its run ends it.
        let over =
            cursor.quiet.is_multiple_of(RUN_LOOKS) && run_is_over(&cursor.deps, &section.run).await;
        if closed || over {
            continue;
        }
        cursor.open = Some((section, after));
        cursor.looks -= 1;
        if cursor.looks == 0 {
            cursor.ended = true;
            return (Bytes::from_static(END), cursor);
        }
        cursor.deps.clock.sleep(POLL).await;
        cursor.quiet += 1;
        if cursor.quiet.is_multiple_of(QUIET_LOOKS) {
            return (Bytes::from_static(b": waiting\n\n"), cursor);
        }
    }
}

/// Whether nothing more can be written. A store that cannot say so now is asked again.
async fn run_is_over(deps: &Deps, run: &slipway_model::id::RunId) -> bool {
    let found = deps.store.find_run(run).await;
    found.is_ok_and(|run| run.is_none_or(|run| run.status.is_final()))
}
