//! A record is asked for, and why it is not to be had is said.

use arbiter::{Answer, Arbiter, Key, Question, Record};
use manifest::code::Code;
use manifest::problem::Problem;

pub(crate) fn arbiter_problem(why: &str) -> Problem {
    Problem::new(Code::ClusterArbiter, why)
        .hint("nothing was changed; `causeway cluster status` says how etcd is")
}

/// A record as it is now; `None`: there is none.
pub(crate) async fn read(arbiter: &dyn Arbiter, key: &Key) -> Result<Option<Record>, Problem> {
    match arbiter.ask(vec![Question::Read(key.clone())]).await.pop() {
        Some(Answer::Is(is) | Answer::Refused(is)) => Ok(is),
        Some(Answer::Unknown(trouble)) => Err(arbiter_problem(&trouble.to_string())),
        Some(Answer::Swapped(_)) | None => Err(arbiter_problem("etcd did not answer")),
    }
}
