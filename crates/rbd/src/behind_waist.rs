//! An open image behind the waist: a lane for each core that asks.

use crate::error::blocklisted;
use crate::image::Image;
use crate::lane::RbdLane;
use env::{CoreHandle, LocalFuture};
use std::rc::Rc;
use std::sync::Arc;
use volume::{Lane, OpenError, Shape, Volume, VolumeEvents};

impl Volume for Image {
    fn shape(&self) -> Shape {
        self.shape_now()
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            self.open_or_error()?;
            if self.cluster().is_shut_out() {
                return Err(blocklisted(&self.what()).into());
            }
            let shape = self.shape();
            Ok(Rc::new(RbdLane::new(&core, self, shape)) as Rc<dyn Lane>)
        })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.follow_events()
    }
}
