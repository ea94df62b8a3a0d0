//! `lun mirror`: the copies of a LUN are changed.
//!
//! ```text
//!   add, remove: luns/NAA/lun names other nodes --owner: LunCopy::change_copies--> luns/NAA/role
//!   promote:     luns/NAA/lun names this node alone, LunCopy::promote --> luns/NAA/role
//! ```

use crate::ask::{arbiter_problem, read};
use crate::entry::{Begun, Entry};
use crate::facts::{facts, listed};
use crate::found::Found;
use crate::object::{self, LunObject};
use crate::service::Mirrors;
use arbiter::{Arbiter, Key};
use cluster::Cluster;
use engine::{MirrorAsked, MirrorOp, MirrorView};
use manifest::code::Code;
use manifest::objects::{MirrorFacts, NodeNames};
use manifest::problem::Problem;
use replica::{NotPromoted, Revision};
use std::rc::Rc;
use std::time::Duration;

/// Copies that a LUN has at most.
const COPIES_MAX: usize = 2;

/// How long the owner may take to change the record while somebody waits for the answer.
const CHANGED_WITHIN: Duration = Duration::from_secs(15);

/// How often it is checked.
const CHECKS: Duration = Duration::from_millis(20);

fn refused(detail: String) -> Problem {
    Problem::new(Code::MirrorRefused, detail)
}

/// The names without or with one.
fn names_of(all: impl Iterator<Item = String>) -> Result<NodeNames, Problem> {
    let all: Vec<String> = all.collect();
    let names = NodeNames::of(all.iter().map(String::as_str));
    names.map_err(|rule| Problem::new(Code::BadRequest, rule))
}

/// What a change needs of this node.
struct Work<'a> {
    asked: &'a MirrorAsked,
    found: Found,
    cluster: &'a Rc<Cluster>,
    entry: Rc<Entry>,
    key: Key,
    version: Revision,
    object: LunObject,
    arbiter: Rc<dyn Arbiter>,
}

impl Work<'_> {
    fn facts(&self) -> MirrorFacts {
        facts(&self.entry, Some(&self.found), Some(self.cluster))
    }

    fn name(&self) -> &str {
        &self.asked.name
    }

    fn names(&self) -> Vec<String> {
        let names = self.object.copies();
        names
            .iter()
            .flat_map(|it| it.iter())
            .map(str::to_owned)
            .collect()
    }

    fn view(&self, names: Option<NodeNames>, notices: Vec<String>) -> MirrorView {
        let copies = match names {
            Some(names) => names.iter().map(str::to_owned).collect(),
            None => self.names(),
        };
        MirrorView {
            name: self.name().to_owned(),
            naa: self.entry.naa.clone(),
            changed: names.is_some(),
            copies,
            notices,
            loses: None,
        }
    }

    fn node(&self) -> Result<&str, Problem> {
        let node = self.asked.request.node.as_deref();
        node.ok_or_else(|| {
            Problem::new(
                Code::BadRequest,
                "`node` is missing: the node whose copy it is",
            )
        })
    }

    /// What `add` or `remove` makes of the names; `None`: it is so already.
    fn wanted(&self) -> Result<Option<(NodeNames, String)>, Problem> {
        let (node, names) = (self.node()?, self.names());
        let has = names.iter().any(|it| it == node);
        if self.asked.request.operation == MirrorOp::Add {
            if has {
                return Ok(None);
            }
            if self.found.slot_of(node).is_none() {
                let others = self.found.others.iter().map(|it| it.1.clone());
                let all: Vec<String> = others.chain([self.found.name.clone()]).collect();
                let detail = format!("the cluster has no node \"{node}\"");
                let hint = format!("its nodes are {}", listed(&all));
                return Err(Problem::new(Code::BadRequest, detail).hint(hint));
            }
            if names.len() >= COPIES_MAX {
                let detail = format!(
                    "LUN {} has copies on {}, and {COPIES_MAX} are the most",
                    self.name(),
                    listed(&names)
                );
                let hint = format!("`causeway lun mirror remove {} NODE` first", self.name());
                return Err(refused(detail).hint(hint));
            }
            let said = format!(
                "{node} is given all of it, while hosts go on; it takes over once it has that"
            );
            let all = names.into_iter().chain([node.to_owned()]);
            return Ok(Some((names_of(all)?, said)));
        }
        if !has {
            return Ok(None);
        }
        let left: Vec<String> = names.iter().filter(|it| *it != node).cloned().collect();
        let facts = self.facts();
        if !left.iter().any(|it| facts.in_sync.contains(it)) {
            let detail = format!(
                "{node} has all of LUN {} alone: no other copy would be complete",
                self.name()
            );
            let hint = "wait until `causeway lun show` says that another node has all of it; where this one is gone for good, \
                        `causeway lun mirror promote` on the other one";
            return Err(refused(detail).hint(hint));
        }
        let least = self.object.lun.storage.min_copies.unwrap_or(1);
        if u64::from(least) > left.len() as u64 {
            let detail = format!(
                "LUN {} has min_copies = {least}: with fewer copies its writes would wait for ever",
                self.name()
            );
            let hint = format!("`causeway lun set {} min_copies=1` first", self.name());
            return Err(refused(detail).hint(hint));
        }
        let said = format!(
            "the copy on {node} is set aside there, and keeps its data until `causeway lun purge` there"
        );
        Ok(Some((names_of(left.into_iter())?, said)))
    }

    /// Waits until the record has these copies, and no others.
    async fn comes_to(&self, mirrors: &Mirrors, names: NodeNames) -> bool {
        let until = mirrors.core.now().after(CHANGED_WITHIN);
        loop {
            let is = self.facts().copies;
            if is.len() == names.iter().count() && is.iter().all(|it| names.has(it)) {
                return true;
            }
            let gone = *self.entry.begun.borrow() == Begun::Closed;
            if gone || mirrors.core.now() >= until {
                return gone;
            }
            mirrors
                .core
                .sleep_until(mirrors.core.now().after(CHECKS))
                .await;
        }
    }

    async fn swap(&self, mirrors: &Mirrors, names: NodeNames) -> Result<(), Problem> {
        let mut object = self.object.clone();
        object.lun.storage.copies = Some(names);
        let object = object.by((&self.found.name, mirrors.nonce()));
        let at = (&self.key, self.version);
        mirrors.swap_object(&*self.arbiter, at, object).await?;
        mirrors.news.notify_one();
        Ok(())
    }

    async fn add_or_remove(&self, mirrors: &Mirrors) -> Result<MirrorView, Problem> {
        let Some((names, said)) = self.wanted()? else {
            return Ok(self.view(None, Vec::new()));
        };
        let view = self.view(Some(names), vec![said]);
        if self.asked.dry_run {
            return Ok(view);
        }
        self.swap(mirrors, names).await?;
        if self.comes_to(mirrors, names).await {
            return Ok(view);
        }
        let detail = format!(
            "LUN {} is to have copies on {names}, and its owner has not changed the record yet; it does so once it can: {}",
            self.name(),
            self.facts().text
        );
        Err(Problem::new(Code::PartlyDone, detail))
    }

    /// What may be lost, in one sentence.
    fn loses(&self) -> String {
        let facts = self.facts();
        let (own, owner) = (&self.found.name, facts.owner.unwrap_or_default());
        format!(
            "all that hosts wrote to LUN {} since {own} was last in sync: it went to {} alone, which {owner} served last in \
             epoch {}, and {own} does not know how much it is",
            self.name(),
            listed(&facts.in_sync),
            facts.epoch
        )
    }

    fn not_promoted(&self, why: NotPromoted) -> Problem {
        let own = &self.found.name;
        let detail = match why {
            NotPromoted::NotNeeded => format!(
                "{own} owns LUN {} or has all of it, and takes it over by itself",
                self.name()
            ),
            NotPromoted::NoCopy => format!(
                "{own} has no copy of LUN {}, or it has stopped",
                self.name()
            ),
            NotPromoted::NotWhole => format!(
                "the copy of LUN {} on {own} is being made anew, and is a mixture of old and new: bring the other node back, or \
                 restore a backup",
                self.name()
            ),
            NotPromoted::Answers(node) => format!(
                "{} has all of LUN {} and answers: nothing has to be lost",
                self.found.name_of(node),
                self.name()
            ),
            NotPromoted::TooEarly => format!(
                "{own} has just started, and does not know yet who answers: try again in some seconds"
            ),
            NotPromoted::Distrusted => {
                "etcd has not the records that are known here: see `causeway cluster status`"
                    .to_owned()
            }
        };
        refused(detail)
    }

    async fn promote(&self, mirrors: &Mirrors) -> Result<MirrorView, Problem> {
        let id = self.entry.id();
        let may = self.cluster.may_promote(id);
        may.map_err(|why| self.not_promoted(why))?;
        let (loses, own) = (self.loses(), &self.found.name);
        if !self.asked.request.lose {
            let hint = format!(
                "be sure that the others are off and stay off, or hosts may still write there; then `causeway lun mirror promote \
                 {} --lose`",
                self.name()
            );
            return Err(refused(format!("this would be lost: {loses}")).hint(hint));
        }
        let names = names_of(std::iter::once(own.clone()))?;
        let notices = vec![
            format!("{own} serves LUN {} with the only copy", self.name()),
            "what other nodes have of it is set aside there when they come back, and never served"
                .to_owned(),
        ];
        let loses = Some(loses);
        let view = MirrorView {
            loses,
            ..self.view(Some(names), notices)
        };
        if self.asked.dry_run {
            return Ok(view);
        }
        self.swap(mirrors, names).await?;
        tracing::warn!(
            lun = self.name(),
            loses = view.loses,
            "a copy is promoted by force"
        );
        let begun = self.cluster.promote(id).await;
        begun.map_err(|why| self.not_promoted(why))?;
        if self.comes_to(mirrors, names).await {
            return Ok(view);
        }
        let detail = format!(
            "LUN {}: etcd has not said yet that {own} owns it: {}",
            self.name(),
            self.facts().text
        );
        Err(Problem::new(Code::PartlyDone, detail))
    }
}

impl Mirrors {
    /// Changes the copies of a LUN, or says what that would do.
    pub(crate) async fn change(self: Rc<Self>, asked: MirrorAsked) -> Result<MirrorView, Problem> {
        let work = self.work(&asked).await?;
        match asked.request.operation {
            MirrorOp::Add | MirrorOp::Remove => work.add_or_remove(&self).await,
            MirrorOp::Promote => work.promote(&self).await,
        }
    }

    async fn work<'a>(&'a self, asked: &'a MirrorAsked) -> Result<Work<'a>, Problem> {
        let nodes = self.nodes.get();
        let found = nodes.and_then(|it| it.found());
        let (Some(nodes), Some(found)) = (nodes, found) else {
            let detail = "this node is in no cluster, so that no other one can have a copy";
            let hint = "`causeway cluster init`, or `join` on the second node, comes first";
            return Err(Problem::new(Code::ClusterNone, detail).hint(hint));
        };
        let lun = &asked.lun;
        let entry = self.entries.borrow().get(&lun.naa).map(Rc::clone);
        let (Some(entry), Some(cluster), Some(key)) =
            (entry, self.cluster.get(), object::key(&lun.naa))
        else {
            let detail = format!("LUN {} was made without copies, or is offline", asked.name);
            let hint = "copies are given when a LUN is made: `causeway lun create NAME --copies NODE,NODE`";
            return Err(refused(detail).hint(hint));
        };
        let arbiter = nodes.arbiter().await;
        let arbiter = arbiter.ok_or_else(|| arbiter_problem("etcd cannot be asked"))?;
        let is = read(&*arbiter, &key).await?;
        let (version, text) = is.ok_or_else(|| {
            refused(format!(
                "LUN {} is not known to the cluster yet: it was made just now",
                asked.name
            ))
        })?;
        let object = object::decode(&text).map_err(|why| arbiter_problem(&why))?;
        Ok(Work {
            asked,
            found,
            cluster,
            entry,
            key,
            version,
            object,
            arbiter,
        })
    }
}
