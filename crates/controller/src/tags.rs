//! Tags of the objects that are in force.

use crate::Controller;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::tag::{Expected, Tagged, tag};

impl Controller {
    fn tag_key(&self) -> &[u8; 32] {
        self.tag_key.get_or_init(|| {
            let mut key = [0; 32];
            self.core.fill_random(&mut key);
            key
        })
    }

    /// The tag of what there is; `None`: there is no such object. Another daemon has other tags,
    /// also the next one here.
    #[must_use]
    pub fn tag(&self, of: &Tagged) -> Option<String> {
        tag(self.tag_key(), &self.objects(), of)
    }

    /// What there is is what was expected, where anything was. Who asks holds the store, so that it
    /// stays so.
    ///
    /// # Errors
    /// It is not: [`Code::ChangedMeanwhile`].
    pub(crate) fn expect(&self, expected: Option<&Expected>) -> Result<(), Problem> {
        let Some(expected) = expected else {
            return Ok(());
        };
        if expected.fits(self.tag_key(), &self.objects()) {
            return Ok(());
        }
        let what = match &expected.of {
            Tagged::All => "the objects are".to_owned(),
            Tagged::Section(section) => format!("the {section}s are"),
            Tagged::One(subject) => format!("{} \"{}\" is", subject.section, subject.name),
        };
        let detail = format!("{what} not as If-Match expects");
        Err(Problem::new(Code::ChangedMeanwhile, detail))
    }
}
