//! Sequential streams: consecutive commands of one extent stay on one path, so that the target sees
//! long runs; the next extent is free to go elsewhere, so that one stream still uses every link.

use super::model::Request;

/// Bytes of the volume whose sequential commands stay together.
pub(crate) const EXTENT: u64 = 1 << 20;

/// Commands in a row that make a stream.
const RUN: u8 = 3;

const STREAMS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where the next command would start.
    next: u64,
    run: u8,
    path: usize,
    used: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    known: [Option<Stream>; STREAMS],
    count: u64,
}

impl Streams {
    /// The path that the stream of `request` would rather not leave.
    pub(crate) fn favourite(&self, request: &Request) -> Option<usize> {
        let continued = |stream: &&Stream| {
            let same_extent = stream.next.checked_sub(1).map(|last| last / EXTENT)
                == Some(request.start / EXTENT);
            stream.next == request.start && same_extent && stream.run >= RUN
        };
        self.known
            .iter()
            .flatten()
            .find(continued)
            .map(|stream| stream.path)
    }

    /// The command was sent on `path`.
    pub(crate) fn went(&mut self, request: &Request, path: usize) {
        self.count += 1;
        let next = request.start.saturating_add(request.bytes);
        let used = self.count;
        let mut known = self.known.iter_mut().flatten();
        if let Some(stream) = known.find(|stream| stream.next == request.start) {
            *stream = Stream {
                next,
                run: stream.run.saturating_add(1),
                path,
                used,
            };
            return;
        }
        let oldest = self
            .known
            .iter_mut()
            .min_by_key(|it| it.map_or(0, |stream| stream.used));
        if let Some(place) = oldest {
            *place = Some(Stream {
                next,
                run: 1,
                path,
                used,
            });
        }
    }
}
