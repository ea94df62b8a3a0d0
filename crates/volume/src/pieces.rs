//! The one answer of a request that was done in pieces.

use crate::{Done, IoError, IoFuture, IoResult};
use env::Answer;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use units::{Buf, BufMut};

/// Waits until every piece has ended. The data, put together by `whole` and in the memory that a
/// read was given, if it was; or one of the errors: that the writer lost its right before all else,
/// then of blocks that failed the lowest, else the first. One that promises that nothing was done
/// is reported only where no piece has changed anything.
pub fn join(
    answers: Vec<IoFuture>,
    into: Option<BufMut>,
    whole: impl FnOnce(Vec<Buf>) -> Buf + 'static,
) -> IoFuture {
    let all = all(answers);
    Answer::wait(async move { joined(all.await, into, whole) })
}

/// The same of pieces that have ended.
pub fn joined(
    results: impl IntoIterator<Item = IoResult>,
    into: Option<BufMut>,
    whole: impl FnOnce(Vec<Buf>) -> Buf,
) -> IoResult {
    let mut parts = Vec::new();
    let mut errors = Vec::new();
    let mut changed = false;
    let mut all_logged = true;
    for result in results {
        all_logged &= matches!(result, Ok(Done::Logged));
        match result {
            Ok(Done::Data(part)) => parts.push(part),
            Ok(Done::Nothing | Done::Logged | Done::Extents(_)) => changed = true,
            Err(error) => errors.push(error),
        }
    }
    if let Some(error) = reported(&errors) {
        changed |= errors.iter().any(|error| !error.leaves_nothing_done());
        return Err(if changed { error.of_a_part() } else { error });
    }
    if parts.is_empty() {
        let is_logged = changed && all_logged;
        return Ok(if is_logged {
            Done::Logged
        } else {
            Done::Nothing
        });
    }
    let data = whole(parts);
    Ok(Done::Data(match into {
        None => data,
        Some(mut into) => {
            into.copy_all(&data);
            into.freeze()
        }
    }))
}

/// Waits for every answer; they come in order.
pub fn all(answers: Vec<IoFuture>) -> impl Future<Output = Vec<IoResult>> {
    All(answers.into_iter().map(Answer::now).collect())
}

/// Pieces one after the other.
pub fn in_order(parts: Vec<Buf>) -> Buf {
    let mut data = Buf::empty();
    for part in parts {
        data.append_owned(part);
    }
    data
}

/// Which of the errors is reported.
fn reported(errors: &[IoError]) -> Option<IoError> {
    if errors.contains(&IoError::Fenced) {
        return Some(IoError::Fenced);
    }
    let of_blocks = errors.iter().filter(|error| error.lba().is_some());
    let lowest = of_blocks.min_by_key(|error| error.lba());
    lowest.or(errors.first()).copied()
}

type Waiting = Pin<Box<dyn Future<Output = IoResult>>>;

/// All answers, in order.
struct All(Vec<Result<IoResult, Waiting>>);

impl Future for All {
    type Output = Vec<IoResult>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<IoResult>> {
        let all = &mut self.get_mut().0;
        for answer in all.iter_mut() {
            if let Err(waiting) = answer
                && let Poll::Ready(result) = waiting.as_mut().poll(cx)
            {
                *answer = Ok(result);
            }
        }
        if all.iter().any(Result::is_err) {
            return Poll::Pending;
        }
        let done = std::mem::take(all).into_iter();
        Poll::Ready(done.filter_map(Result::ok).collect())
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::task::Waker;
    use units::Lba;

    fn of_all(answers: Vec<IoResult>) -> IoResult {
        let answers = answers.into_iter().map(IoFuture::ready).collect();
        let mut answer = join(answers, None, in_order);
        match Pin::new(&mut answer).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("every piece has ended"),
        }
    }

    fn reported_of(answers: Vec<IoResult>) -> Result<(), IoError> {
        of_all(answers).map(|_| ())
    }

    #[test]
    fn that_nothing_was_done_is_reported_only_if_it_is_so_of_every_piece() {
        let refused = || Err(IoError::WriteProtected);
        assert_eq!(
            reported_of(vec![refused(), refused()]),
            Err(IoError::WriteProtected)
        );
        let part = [
            vec![refused(), Ok(Done::Nothing)],
            vec![Ok(Done::Nothing), refused()],
        ];
        for part in part {
            assert_eq!(reported_of(part), Err(IoError::Unavailable));
        }
        for (answers, is_logged) in [
            (vec![Ok(Done::Logged), Ok(Done::Logged)], true),
            (vec![Ok(Done::Logged), Ok(Done::Nothing)], false),
        ] {
            let done = of_all(answers);
            assert_eq!(matches!(done, Ok(Done::Logged)), is_logged, "{done:?}");
        }
        let busy = vec![Err(IoError::Busy), refused()];
        assert_eq!(reported_of(busy), Err(IoError::Busy));
    }

    #[test]
    fn a_lost_right_is_reported_before_blocks_and_of_blocks_the_lowest() {
        let medium = |lba| Err(IoError::MediumError { lba: Lba(lba) });
        let lowest = vec![Err(IoError::TimedOut), medium(9), medium(4)];
        assert_eq!(
            reported_of(lowest),
            Err(IoError::MediumError { lba: Lba(4) }.of_a_part())
        );
        let fenced = vec![medium(3), Err(IoError::Fenced)];
        assert_eq!(reported_of(fenced), Err(IoError::Fenced.of_a_part()));
    }

    #[test]
    fn data_of_pieces_comes_in_their_order() {
        let part = |bytes: &[u8]| Ok(Done::Data(Buf::copy_of(bytes)));
        let Ok(Done::Data(data)) = of_all(vec![part(b"ab"), part(b"c"), part(b"de")]) else {
            panic!("a read answers data");
        };
        assert_eq!(data.to_vec(), b"abcde");
        assert!(matches!(of_all(vec![]), Ok(Done::Nothing)));
    }
}
