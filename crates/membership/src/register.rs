//! Records of a cluster in its arbiter: read, followed, and changed by compare-and-swap alone.

use crate::admission::{Candidate, LEVELS, admits};
use crate::authority::{Authority, PublicKey};
use crate::fingerprint::Fingerprint;
use crate::records::{
    ClusterRecord, Der, NodeRecord, Profile, Standing, TokenRecord, UsedBy, Written, cluster_key,
    decode, decode_node, encode, node_key, nodes_key, slot_of, token_key,
};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::{Known, Roster};
use crate::token::{Use, is_secret_of, unknown, use_of};
use arbiter::{Answer, Arbiter, Key, Question, Record, Swap, Trouble, role};
use env::CoreHandle;
use replica::{NodeSlot, Revision};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use units::WallClock;

/// How long an arbiter that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(10);

/// How soon.
const AGAIN: Duration = Duration::from_millis(200);

/// How often one that is changed by others meanwhile is changed anew.
const RACES_MAX: usize = 64;

/// What became of a swap.
#[derive(Debug)]
pub enum Done {
    /// It was done, with this version.
    Swapped(Revision),
    /// It will never be: this is there.
    Met(Option<Record>),
}

/// What a node that was let in gets.
#[derive(Debug)]
pub struct Admitted {
    /// Its number.
    pub slot: u8,
    /// Its record, with its certificate.
    pub record: NodeRecord,
    /// All that is known of the cluster.
    pub roster: Roster,
}

/// A LUN with a copy on a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CopyHere {
    /// The LUN's identity.
    pub naa: String,
    /// No other node has all of it.
    pub is_last: bool,
}

/// Asks an arbiter, with patience.
#[derive(Clone)]
pub struct Register {
    core: CoreHandle,
    arbiter: Rc<dyn Arbiter>,
}

fn of_trouble(trouble: &Trouble) -> Refusal {
    Refusal::new(RefusalKind::Arbiter, &trouble.cause, &trouble.next_step)
}

fn garbled(key: &Key, why: &str) -> Refusal {
    Refusal::new(
        RefusalKind::Arbiter,
        format!("{key}: the record cannot be read: {why}"),
        "update this node if another one is newer; else somebody wrote it by hand: put the one before it back",
    )
}

/// The cluster's record is not there.
#[must_use]
pub fn no_cluster() -> Refusal {
    Refusal::new(
        RefusalKind::Arbiter,
        "etcd has no cluster below this prefix",
        "check `cluster.etcd` and `cluster.prefix` of node.toml; if it was emptied, restore it from its newest backup",
    )
}

fn wrong(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(
        RefusalKind::Garbled,
        format!("the certificate cannot be signed: {error}"),
        "please report this with the log",
    )
}

impl Register {
    /// Asks this one.
    #[must_use]
    pub fn new(core: &CoreHandle, arbiter: Rc<dyn Arbiter>) -> Self {
        Self {
            core: Rc::clone(core),
            arbiter,
        }
    }

    /// Who is asked.
    #[must_use]
    pub fn arbiter(&self) -> Rc<dyn Arbiter> {
        Rc::clone(&self.arbiter)
    }

    /// Asks until there is an answer that says something.
    async fn ask(&self, question: Question) -> Result<Answer, Refusal> {
        let until = self.core.now().after(PATIENCE);
        loop {
            let mut answers = self.arbiter.ask(vec![question.clone()]).await;
            let answer = answers.pop();
            let trouble = match answer {
                Some(Answer::Unknown(trouble)) => trouble,
                Some(answer) => return Ok(answer),
                None => return Err(no_cluster()),
            };
            if trouble.kind.lasts() || self.core.now() >= until {
                return Err(of_trouble(&trouble));
            }
            self.core.sleep_until(self.core.now().after(AGAIN)).await;
        }
    }

    async fn read(&self, key: Key) -> Result<Option<Record>, Refusal> {
        match self.ask(Question::Read(key)).await? {
            Answer::Is(record) | Answer::Refused(record) => Ok(record),
            Answer::Swapped(_) | Answer::Unknown(_) => Ok(None),
        }
    }

    /// Puts a record there, if the one that is there has this version.
    ///
    /// # Errors
    /// Nobody knows whether it was done. Asking the same again finds out.
    pub async fn swap(&self, key: Key, expected: Revision, to: Vec<u8>) -> Result<Done, Refusal> {
        let swap = Swap::new(key, expected, to);
        match self.ask(Question::Swap(swap)).await? {
            Answer::Swapped(revision) => Ok(Done::Swapped(revision)),
            Answer::Refused(record) | Answer::Is(record) => Ok(Done::Met(record)),
            Answer::Unknown(trouble) => Err(of_trouble(&trouble)),
        }
    }

    /// The cluster's record.
    ///
    /// # Errors
    /// The arbiter does not answer, or what is there cannot be read.
    pub async fn cluster(&self) -> Result<Option<Known<ClusterRecord>>, Refusal> {
        let key = cluster_key();
        let Some((revision, text)) = self.read(key.clone()).await? else {
            return Ok(None);
        };
        let record = decode(&text).map_err(|why| garbled(&key, &why))?;
        let revision = revision.0;
        Ok(Some(Known { revision, record }))
    }

    /// The cluster and all its nodes.
    ///
    /// # Errors
    /// The arbiter does not answer, has no cluster, or what is there cannot be read.
    pub async fn roster(&self) -> Result<Roster, Refusal> {
        let cluster = self.cluster().await?.ok_or_else(no_cluster)?;
        let mut roster = Roster {
            cluster,
            nodes: BTreeMap::new(),
            until: 0,
        };
        self.follow(&mut roster).await?;
        Ok(roster)
    }

    /// Takes over which nodes changed; whether any did.
    ///
    /// # Errors
    /// The arbiter does not answer, or what is there cannot be read.
    pub async fn follow(&self, roster: &mut Roster) -> Result<bool, Refusal> {
        let (changes, until) = self.changes(&nodes_key(), Revision(roster.until)).await?;
        let mut has_changed = false;
        for (key, (revision, text)) in changes {
            let Some(slot) = slot_of(&key) else { continue };
            let record = decode_node(&text).map_err(|why| garbled(&key, &why))?;
            let revision = revision.0;
            roster.knows(slot, Known { revision, record });
            has_changed = true;
        }
        roster.until = until.0;
        Ok(has_changed)
    }

    async fn changes(
        &self,
        below: &Key,
        since: Revision,
    ) -> Result<(Vec<(Key, Record)>, Revision), Refusal> {
        let until = self.core.now().after(PATIENCE);
        loop {
            let trouble = match self.arbiter.changes(below, since).await {
                Ok(changes) => return Ok((changes.records, changes.until)),
                Err(trouble) => trouble,
            };
            if trouble.kind.lasts() || self.core.now() >= until {
                return Err(of_trouble(&trouble));
            }
            self.core.sleep_until(self.core.now().after(AGAIN)).await;
        }
    }

    /// Makes the cluster, with its first node. Asked again with the same records it goes on where
    /// it was cut off.
    ///
    /// # Errors
    /// Another cluster is there.
    pub async fn found(
        &self,
        cluster: &ClusterRecord,
        first: &NodeRecord,
    ) -> Result<Roster, Refusal> {
        let done = self
            .swap(cluster_key(), Revision(0), encode(cluster))
            .await?;
        if let Done::Met(is) = done {
            return Err(self.is_taken(is).await);
        }
        let done = self.swap(node_key(0), Revision(0), encode(first)).await?;
        if let Done::Met(Some((_, text))) = &done
            && decode_node(text).map(|it| it.profile.id) != Ok(first.profile.id.clone())
        {
            let why = "another node's record is there";
            return Err(garbled(&node_key(0), why));
        }
        self.roster().await
    }

    /// Why no cluster can be made where this record is.
    async fn is_taken(&self, is: Option<Record>) -> Refusal {
        let (name, id) = is
            .and_then(|(_, text)| decode::<ClusterRecord>(&text).ok())
            .map(|it| (it.name, it.id))
            .unwrap_or_default();
        let roster = self.roster().await;
        if roster.is_ok_and(|it| !it.nodes.is_empty() && it.joined().next().is_none()) {
            return Refusal::new(
                RefusalKind::Member,
                format!(
                    "etcd has a cluster below this prefix that all nodes have left: {name} ({id})"
                ),
                "write another `cluster.prefix` into node.toml, or delete the records below this one in etcd",
            );
        }
        Refusal::new(
            RefusalKind::Member,
            format!("etcd has a cluster below this prefix already: {name} ({id})"),
            "join it with a token (`causeway cluster token` on one of its nodes), or write another \
             `cluster.prefix` into node.toml for a cluster of its own",
        )
    }

    /// Stores a token that was just made.
    ///
    /// # Errors
    /// The arbiter does not answer.
    pub async fn keep_token(&self, id: &str, record: &TokenRecord) -> Result<(), Refusal> {
        let key = token_key(id).ok_or_else(unknown)?;
        match self.swap(key, Revision(0), encode(record)).await? {
            Done::Swapped(_) => Ok(()),
            Done::Met(_) => Err(unknown()),
        }
    }

    async fn token(&self, id: &str) -> Result<(Key, Known<TokenRecord>), Refusal> {
        let key = token_key(id).ok_or_else(unknown)?;
        let (revision, text) = self.read(key.clone()).await?.ok_or_else(unknown)?;
        let record = decode(&text).map_err(|why| garbled(&key, &why))?;
        let revision = revision.0;
        Ok((key, Known { revision, record }))
    }

    /// Whether this is the secret of a token that there is: nothing more is heard of who does not
    /// have it.
    ///
    /// # Errors
    /// It is not, or the arbiter does not answer.
    pub async fn knows_token(&self, id: &str, secret: &str) -> Result<(), Refusal> {
        let (_, known) = self.token(id).await?;
        if is_secret_of(&known.record, secret) {
            Ok(())
        } else {
            Err(unknown())
        }
    }

    /// Lets a node in, once for each token: whoever is asked, and however often.
    ///
    /// # Errors
    /// Why not. Unless that is the token, it stays good.
    pub async fn admit(
        &self,
        authority: &Authority,
        (by, naas, now): (&str, &BTreeSet<String>, WallClock),
        (candidate, key): (&Candidate, &PublicKey),
        (id, secret): (&str, &str),
    ) -> Result<Admitted, Refusal> {
        let (name, token) = self.token(id).await?;
        if !is_secret_of(&token.record, secret) {
            return Err(unknown());
        }
        let user = UsedBy {
            node: candidate.profile.id.clone(),
            key: key.fingerprint(),
        };
        let usage = use_of(&token.record, user.clone(), now)?;
        let roster = self.roster().await?;
        if let Some(admitted) = admitted_by(&roster, id, &user)? {
            return self.is_the_only_one(admitted, by).await;
        }
        admits(candidate, &roster, naas, now)?;
        if let Use::First(to) = usage {
            let to = TokenRecord {
                written: Written::by(&self.core, by),
                ..to
            };
            let swapped = self.swap(name, token.version(), encode(&to)).await?;
            if let Done::Met(is) = swapped {
                let is = is.and_then(|(_, text)| decode::<TokenRecord>(&text).ok());
                use_of(&is.ok_or_else(unknown)?, user.clone(), now)?;
            }
        }
        let record = |slot: u8| -> Result<NodeRecord, Refusal> {
            let node = &candidate.profile.id;
            let certificate = authority.signs(slot, node, key, now);
            let certificate = certificate.map_err(|error| wrong(&error))?;
            Ok(NodeRecord {
                profile: candidate.profile.clone(),
                fingerprint: Fingerprint::of(&certificate),
                certificate: Der(certificate),
                fingerprint_before: None,
                standing: Standing::Joined,
                token: Some(id.to_owned()),
                written: Written::by(&self.core, by),
            })
        };
        let admitted = self.take_slot(roster, record, (id, &user)).await?;
        self.is_the_only_one(admitted, by).await
    }

    /// Takes the lowest number that no node ever had.
    async fn take_slot(
        &self,
        mut roster: Roster,
        record: impl Fn(u8) -> Result<NodeRecord, Refusal>,
        (token, user): (&str, &UsedBy),
    ) -> Result<Admitted, Refusal> {
        while let Some(slot) = roster.free_slot() {
            let record = record(slot)?;
            let key = node_key(slot);
            let (revision, record) =
                match self.swap(key.clone(), Revision(0), encode(&record)).await? {
                    Done::Swapped(revision) => (revision, record),
                    Done::Met(Some((revision, text))) => {
                        let record = decode_node(&text).map_err(|why| garbled(&key, &why))?;
                        (revision, record)
                    }
                    Done::Met(None) => return Err(no_cluster()),
                };
            let revision = revision.0;
            roster.knows(slot, Known { revision, record });
            if let Some(admitted) = admitted_by(&roster, token, user)? {
                return Ok(admitted);
            }
        }
        Err(Refusal::new(
            RefusalKind::Full,
            "the cluster has had 64 nodes, and the number of a node is given once",
            "make a new cluster and move the LUNs there",
        ))
    }

    /// Two that may not be in one cluster may have come at the same moment, with a token each: the
    /// one whose record is newer goes.
    async fn is_the_only_one(&self, admitted: Admitted, by: &str) -> Result<Admitted, Refusal> {
        let roster = self.roster().await?;
        let ours = roster.nodes.get(&admitted.slot).ok_or_else(no_cluster)?;
        let mut earlier = roster.clone();
        let is_later = |it: &Known<NodeRecord>| it.revision >= ours.revision;
        earlier.nodes.retain(|_, it| !is_later(it));
        let profile = &ours.record.profile;
        let clash = earlier.joined().find(|(_, it)| {
            let known = &it.profile;
            let same = |at| known.addresses.contains(at);
            known.id == profile.id
                || known.name == profile.name
                || profile.addresses.iter().any(same)
        });
        let Some((slot, other)) = clash else {
            return Ok(Admitted { roster, ..admitted });
        };
        let refusal = Refusal::new(
            RefusalKind::Unfit,
            format!(
                "node {slot} ({}) has joined at the same moment, with the same identifier, name or address",
                other.profile.name
            ),
            "give each node a state_dir, a name and an address of its own, and have another token made",
        );
        self.leaves(admitted.slot, by).await?;
        Err(refusal)
    }

    /// Changes a node's record, however many others do meanwhile; `None` of `change`: it is as it
    /// should be.
    ///
    /// # Errors
    /// There is no such node, or the arbiter does not answer.
    pub async fn change_node(
        &self,
        slot: u8,
        by: &str,
        change: impl Fn(&NodeRecord) -> Option<NodeRecord>,
    ) -> Result<Known<NodeRecord>, Refusal> {
        let key = node_key(slot);
        for _ in 0..RACES_MAX {
            let found = self.read(key.clone()).await?;
            let (revision, text) = found.ok_or_else(no_cluster)?;
            let record = decode_node(&text).map_err(|why| garbled(&key, &why))?;
            let Some(to) = change(&record) else {
                let revision = revision.0;
                return Ok(Known { revision, record });
            };
            let to = NodeRecord {
                written: Written::by(&self.core, by),
                ..to
            };
            if let Done::Swapped(revision) = self.swap(key.clone(), revision, encode(&to)).await? {
                let revision = revision.0;
                return Ok(Known {
                    revision,
                    record: to,
                });
            }
        }
        Err(garbled(&key, "others change it without end"))
    }

    /// A node counts no more.
    ///
    /// # Errors
    /// There is no such node, or the arbiter does not answer.
    pub async fn leaves(&self, slot: u8, by: &str) -> Result<Known<NodeRecord>, Refusal> {
        let left = |it: &NodeRecord| {
            (it.standing == Standing::Joined).then(|| NodeRecord {
                standing: Standing::Left,
                ..it.clone()
            })
        };
        self.change_node(slot, by, left).await
    }

    /// The LUNs with a copy on a node.
    ///
    /// # Errors
    /// The arbiter does not answer, or a record cannot be read.
    pub async fn copies_on(&self, slot: u8) -> Result<Vec<CopyHere>, Refusal> {
        let mut out = Vec::new();
        for (naa, role) in self.roles().await? {
            let slot = NodeSlot(slot);
            if role.copy_of(slot).is_some() {
                let is_last = role.in_sync.has(slot) && role.in_sync.count() == 1;
                out.push(CopyHere { naa, is_last });
            }
        }
        Ok(out)
    }

    /// The identities of LUNs with copies.
    ///
    /// # Errors
    /// The arbiter does not answer, or a record cannot be read.
    pub async fn mirrored(&self) -> Result<BTreeSet<String>, Refusal> {
        let all = self.roles().await?.into_iter();
        Ok(all.map(|(naa, _)| naa).collect())
    }

    async fn roles(&self) -> Result<Vec<(String, replica::RoleRecord)>, Refusal> {
        let Some(below) = Key::new("luns") else {
            return Ok(Vec::new());
        };
        let (records, _) = self.changes(&below, Revision(0)).await?;
        let mut out = Vec::new();
        for (key, (_, text)) in records {
            let rest = key.as_str().strip_prefix("luns/");
            let Some(naa) = rest.and_then(|it| it.strip_suffix("/role")) else {
                continue;
            };
            let role = role::decode(&text).map_err(|why| garbled(&key, &why))?;
            out.push((naa.to_owned(), role));
        }
        Ok(out)
    }
}

/// The node that came with a token, where it is in. What it gets is for nobody else who has the
/// token.
fn admitted_by(roster: &Roster, token: &str, user: &UsedBy) -> Result<Option<Admitted>, Refusal> {
    let mut all = roster.nodes.iter();
    let found = all.find(|(_, it)| it.record.token.as_deref() == Some(token));
    let Some((slot, Known { record, .. })) = found else {
        return Ok(None);
    };
    let key = PublicKey::of(&record.certificate.0).map(|it| it.fingerprint());
    let is_user = record.profile.id == user.node && key == Some(user.key);
    let who = match record.standing {
        Standing::Left => "a node that has left",
        Standing::Joined if is_user => "",
        Standing::Joined => "the node",
    };
    if !who.is_empty() {
        return Err(Refusal::new(
            RefusalKind::Token,
            format!(
                "the token was used already, by {who} ({})",
                record.profile.name
            ),
            "have another one made by `causeway cluster token` on a node of the cluster",
        ));
    }
    Ok(Some(Admitted {
        slot: *slot,
        record: record.clone(),
        roster: roster.clone(),
    }))
}

/// The first node of a new cluster.
///
/// # Errors
/// The library cannot sign.
pub fn first(
    core: &CoreHandle,
    (authority, key): (&Authority, &PublicKey),
    (cluster, name): (&str, &str),
    (profile, now): (&Profile, WallClock),
) -> Result<(ClusterRecord, NodeRecord), Refusal> {
    let signed = |it: Result<Vec<u8>, rcgen::Error>| it.map_err(|error| wrong(&error));
    let certificate = signed(authority.signs(0, &profile.id, key, now))?;
    let cluster = ClusterRecord {
        id: cluster.to_owned(),
        name: name.to_owned(),
        authority: Der(signed(authority.certificate())?),
        level: LEVELS[1],
        written: Written::by(core, &profile.id),
    };
    let node = NodeRecord {
        profile: profile.clone(),
        fingerprint: Fingerprint::of(&certificate),
        certificate: Der(certificate),
        fingerprint_before: None,
        standing: Standing::Joined,
        token: None,
        written: Written::by(core, &profile.id),
    };
    Ok((cluster, node))
}
