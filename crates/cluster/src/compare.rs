//! Which blocks two copies have otherwise: the owner says digests of what it has, and the copy that
//! is made anew answers with digests of what it has, of those parts that are not alike.
//!
//! **Why what is alike once stays so**, although neither waits for the other and hosts go on
//! writing. Take a block that the owner read with all changes below one number, and the copy with
//! all below another one, from where its log went on. If no change of the block lies between these
//! numbers, both have the same. If one does and the copy read later, the copy has it by that change
//! itself. If the owner read later, that change is on its way to the copy. So what was equal then
//! is right, or will be; what differs by a change on its way is sent once more than it had to be.

use crate::copying::Copying;
use crate::digest::{
    Answered, Asked, Digest, PARTS_MAX, Summing, differing, read_answered, read_asked,
    write_answered, write_asked,
};
use crate::lun::Lun;
use crate::pace::Worker;
use crate::unit_side::part;
use env::yield_now;
use peer::{UnitPart, UnitSubject};
use replica::{Epoch, NodeSlot};
use std::rc::Rc;
use std::time::Duration;
use units::LbaRange;
use volume::{IoError, Volume};

/// Parts that are not compared by then are sent.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

impl Lun {
    /// The blocks of these parts that the copy on a node may have otherwise; none, when nothing is
    /// copied there any more.
    pub(crate) async fn differing(
        &self,
        (to, copying): (NodeSlot, &Copying),
        parts: &[LbaRange],
        pace: &Worker,
    ) -> Vec<LbaRange> {
        let own = loop {
            match self.pieces(parts, Some(pace)).await {
                Ok(own) => break own,
                Err(error) => self.copy_failed(copying, error).await,
            }
            if !self.is_copying(to, copying) {
                return Vec::new();
            }
        };
        let asked: Vec<Asked> = parts
            .iter()
            .zip(&own)
            .map(|(part, pieces)| (*part, Digest::of_pieces(pieces)))
            .collect();
        let said = write_asked(&asked);
        copying
            .digests
            .set(copying.digests.get() + said.len() as u64);
        let answer = self.ask_digests(to, said).await;
        let came = answer.as_ref().map_or(0, Vec::len);
        copying.digests.set(copying.digests.get() + came as u64);
        let Some(others) = answer.as_deref().and_then(read_answered) else {
            return parts.to_vec();
        };
        let block = u64::from(self.volume.shape().block_size.bytes());
        let found = parts.iter().zip(&own).flat_map(|(part, own)| {
            let others = others.get(&part.start().0);
            others.map_or_else(Vec::new, |it| differing(*part, block, (own, it)))
        });
        found.collect()
    }

    async fn ask_digests(&self, to: NodeSlot, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let ask = |number| {
            let question = UnitPart {
                epoch: self.epoch(),
                version: number,
                ..part(UnitSubject::Compare, bytes)
            };
            self.say_of_unit(to, &question);
        };
        self.comparing.ask(&self.core, ANSWERED_WITHIN, ask).await
    }

    /// The answer to a question of this node's.
    pub(crate) fn is_answered(&self, answer: UnitPart) {
        if answer.epoch == self.epoch() {
            self.comparing.answer(answer.version, answer.bytes);
        }
    }

    /// An owner asks what the copy here has otherwise.
    pub(crate) fn is_asked(self: &Rc<Self>, node: NodeSlot, question: UnitPart) {
        let lun = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let shape = lun.volume.shape();
            let (blocks, block) = (shape.block_count.0, shape.block_size.bytes());
            let asked = read_asked(&question.bytes, blocks, block.into());
            let Some(asked) = asked.filter(|_| lun.follows(question.epoch)) else {
                return;
            };
            let answered = lun.answer_digests(&asked).await;
            // What is read from a log that has begun anew meanwhile is no answer.
            if lun.follows(question.epoch) {
                let answer = UnitPart {
                    epoch: question.epoch,
                    version: question.version,
                    ..part(UnitSubject::Compared, write_answered(&answered))
                };
                lun.say_of_unit(node, &answer);
            }
        }));
    }

    fn follows(&self, epoch: Epoch) -> bool {
        let rings = self.rings.borrow();
        rings.iter().all(|it| it.follows == Some(epoch))
    }

    async fn answer_digests(&self, asked: &[Asked]) -> Answered {
        let parts: Vec<LbaRange> = asked.iter().map(|it| it.0).collect();
        let unread = || vec![Vec::new(); parts.len()];
        // What cannot be read here is mended by what the owner sends.
        let own = self.pieces(&parts, None).await.unwrap_or_else(|_| unread());
        let all = asked.iter().zip(own);
        let others = all.filter(|((_, digest), own)| Digest::of_pieces(own) != *digest);
        others
            .map(|((part, _), own)| (part.start().0, own))
            .collect()
    }

    /// Digests of all pieces of these parts, as they are committed here.
    async fn pieces(
        &self,
        parts: &[LbaRange],
        pace: Option<&Worker>,
    ) -> Result<Vec<Vec<Digest>>, IoError> {
        let block = u64::from(self.volume.shape().block_size.bytes());
        let mut all = Vec::with_capacity(PARTS_MAX);
        for of in parts {
            let (mut summing, mut left) = (Summing::default(), *of);
            while !left.is_empty() {
                let read = self.volume.contents(&self.core, left).await?;
                match &read.data {
                    Some(data) => data.segments().for_each(|it| summing.data(it)),
                    None => summing.zeroes(read.range.len().0 * block),
                }
                let bytes = read.data.as_ref().map_or(0, |it| it.len() as u64);
                if let Some(pace) = pace {
                    pace.may(bytes).await;
                }
                let rest = LbaRange::between(read.range.end(), of.end());
                left = rest.expect("it lies in the part");
            }
            all.push(summing.pieces());
            // Nobody waits for more than one part.
            yield_now().await;
        }
        Ok(all)
    }
}
