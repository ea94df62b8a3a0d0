//! What every command of the daemon's has at hand, and how changes are asked for and reported.

use super::confirm;
use crate::args::{Assigned, Common, Deleted, Renamed};
use client::{Client, segment};
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::view::{Outcome, StatusView};
use output::Output;
use output::assign::{Keys, assignments};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What of an object shall change, as the API takes it: only what was asked for, so that what
/// others change meanwhile stays.
pub(crate) type Patch = serde_json::Map<String, Value>;

/// What keys and values that were assigned change, and the new name, where there is one among them.
pub(crate) type PatchOf =
    for<'a> fn(&[(&'a str, &'a str)]) -> Result<(Patch, Option<&'a str>), Problem>;

/// What every command has at hand.
pub(crate) struct Context<'a> {
    pub(crate) client: Client,
    pub(crate) output: &'a Output,
    yes: bool,
    dry_run: bool,
}

impl<'a> Context<'a> {
    /// With a client of the daemon that the options name.
    pub(crate) fn new(common: &Common, output: &'a Output) -> Result<Self, Problem> {
        Ok(Self {
            client: common.client()?,
            output,
            yes: common.yes,
            dry_run: common.dry_run,
        })
    }

    /// What stands behind the path of a change, after the options of every command.
    pub(crate) fn switches(&self, method: &Method) -> Vec<&'static str> {
        let switches = [("dry_run", self.dry_run), ("force", self.yes)];
        let on = switches.into_iter().filter(|(_, on)| *on);
        let is_change = *method != Method::GET;
        on.filter(|_| is_change).map(|(name, _)| name).collect()
    }
}

/// Where the API has an object.
pub(crate) fn object_path(noun: &str, name: &str) -> String {
    format!("/api/v1/{noun}s/{}", segment(name))
}

/// `problem`, which came after other steps were done.
fn after_part(done: Option<&Outcome>, problem: Problem) -> Problem {
    let Some(done) = done.filter(|done| done.changed) else {
        return problem;
    };
    let actions: Vec<String> = done.actions.iter().map(ToString::to_string).collect();
    let detail = format!("done: {}; then not: {}", actions.join(", "), problem.detail);
    Problem::new(Code::PartlyDone, detail)
        .hint(problem.hint.clone())
        .faults(problem.faults.clone())
        .hits(problem.hits.clone())
}

/// What to do where the object is there already, or is not there any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerate {
    /// It is an error.
    Nothing,
    /// It is fine.
    Code(Code),
}

impl Tolerate {
    pub(crate) fn when(flag: bool, code: Code) -> Self {
        if flag {
            Self::Code(code)
        } else {
            Self::Nothing
        }
    }
}

/// One request of a change.
pub(crate) struct Step {
    method: Method,
    path: String,
    body: Value,
}

impl Step {
    pub(crate) fn new(method: Method, path: impl Into<String>, body: &impl Serialize) -> Self {
        let body = serde_json::to_value(body).expect("documents are made of plain data");
        Self {
            method,
            path: path.into(),
            body,
        }
    }

    /// The object at `path` gets another name.
    fn rename(path: &str, to: &str) -> Self {
        Self::new(Method::POST, format!("{path}/rename"), &json!({ "to": to }))
    }
}

impl Context<'_> {
    /// Only to see what would be done.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// What was asked for is done although something is disturbed.
    pub(crate) fn is_forced(&self) -> bool {
        self.yes
    }

    /// Asks for a change and prints what was done; where an error is tolerated, that nothing was.
    pub(crate) fn change(&self, tolerate: Tolerate, step: &Step) -> Result<(), Problem> {
        let outcome = self.run_steps(tolerate, std::slice::from_ref(step))?;
        self.print(&outcome);
        Ok(())
    }

    /// As [`Context::change`] for one object, which a program is shown as it is afterwards: `path`
    /// says where, from the outcome.
    pub(crate) fn change_object(
        &self,
        tolerate: Tolerate,
        steps: &[Step],
        path: impl FnOnce(&Outcome) -> Result<String, Problem>,
    ) -> Result<(), Problem> {
        let outcome = self.run_steps(tolerate, steps)?;
        if !self.output.is_document() || self.dry_run {
            self.print(&outcome);
            return Ok(());
        }
        let mut object: serde_json::Map<String, Value> = self.client.get(&path(&outcome)?)?;
        object.insert("change".to_owned(), json!(outcome));
        self.output.show(&object, |_| String::new());
        Ok(())
    }

    /// Gives an object another name.
    pub(crate) fn rename(&self, noun: &str, renamed: &Renamed) -> Result<(), Problem> {
        self.set(noun, &renamed.name, None, Some(&renamed.to))
    }

    /// Removes an object.
    pub(crate) fn delete(&self, noun: &str, deleted: &Deleted) -> Result<(), Problem> {
        let tolerate = Tolerate::when(deleted.if_exists, Code::NotFound);
        let path = object_path(noun, &deleted.name);
        self.change(tolerate, &Step::new(Method::DELETE, path, &()))
    }

    /// Changes what was assigned to an object that has these keys, as `patch_of` reads it.
    pub(crate) fn assign(
        &self,
        noun: &str,
        assigned: &Assigned,
        keys: &Keys,
        patch_of: PatchOf,
    ) -> Result<(), Problem> {
        let (patch, new_name) = patch_of(&assignments(&assigned.values, keys)?)?;
        self.patch(noun, &assigned.name, &patch, new_name)
    }

    /// Changes what `patch` says of the object `name`, then its name.
    pub(crate) fn patch(
        &self,
        noun: &str,
        name: &str,
        patch: &Patch,
        new_name: Option<&str>,
    ) -> Result<(), Problem> {
        let step = || Step::new(Method::PATCH, object_path(noun, name), patch);
        self.set(noun, name, (!patch.is_empty()).then(step), new_name)
    }

    /// Changes properties of the object `name` with `step`, then its name.
    pub(crate) fn set(
        &self,
        noun: &str,
        name: &str,
        step: Option<Step>,
        new_name: Option<&str>,
    ) -> Result<(), Problem> {
        let path = object_path(noun, name);
        let mut steps: Vec<Step> = step.into_iter().collect();
        steps.extend(new_name.map(|to| Step::rename(&path, to)));
        let after = object_path(noun, new_name.unwrap_or(name));
        self.change_object(Tolerate::Nothing, &steps, |_| Ok(after))
    }

    /// Runs the steps; where a later one fails although an earlier one was done, that is said.
    pub(crate) fn run_steps(&self, tolerate: Tolerate, steps: &[Step]) -> Result<Outcome, Problem> {
        let mut all: Option<Outcome> = None;
        for step in steps {
            let next = match self.request(step.method.clone(), &step.path, &step.body) {
                Ok(outcome) => outcome,
                Err(problem) if tolerate == Tolerate::Code(problem.code) => {
                    self.nothing_done(&problem)?
                }
                Err(problem) => return Err(after_part(all.as_ref(), problem)),
            };
            match &mut all {
                None => all = Some(next),
                Some(all) => {
                    all.changed |= next.changed;
                    all.generation = next.generation;
                    all.actions.extend(next.actions);
                    all.notices.extend(next.notices);
                    all.refusal = all.refusal.take().or(next.refusal);
                }
            }
        }
        all.ok_or_else(|| Problem::new(Code::BadRequest, "nothing to change was named"))
    }

    fn nothing_done(&self, why: &Problem) -> Result<Outcome, Problem> {
        let status: StatusView = self.client.get("/api/v1/status")?;
        Ok(Outcome {
            changed: false,
            generation: status.generation,
            actions: Vec::new(),
            notices: vec![why.detail.clone()],
            refusal: None,
        })
    }

    /// Asks for a change.
    pub(crate) fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        match self.ask(method.clone(), path, body, self.yes) {
            Err(refused) if confirm::typed(&refused) => self.ask(method, path, body, true),
            done => done,
        }
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        force: bool,
    ) -> Result<T, Problem> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let dry_run = self.dry_run;
        let path = format!("{path}{separator}force={force}&dry_run={dry_run}");
        self.client.send(method, &path, body)
    }

    /// Prints what a change did or would do.
    pub(crate) fn print(&self, outcome: &Outcome) {
        self.output.show(outcome, |outcome| {
            let mut out = String::new();
            if outcome.actions.is_empty() && !outcome.changed && outcome.refusal.is_none() {
                out.push_str("nothing to change\n");
            }
            for action in &outcome.actions {
                out.push_str(&format!("{action}\n"));
                for hit in &action.hits {
                    out.push_str(&format!("  hits {hit}\n"));
                }
            }
            for notice in &outcome.notices {
                out.push_str(&format!("note: {notice}\n"));
            }
            if let Some(refusal) = &outcome.refusal {
                out.push_str(&format!("without --yes it would be refused:\n{refusal}\n"));
            }
            if self.dry_run {
                out.push_str("(dry run: nothing was changed)\n");
            }
            out
        });
    }
}
