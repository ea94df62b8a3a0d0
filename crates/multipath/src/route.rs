//! One path: its port, its session, and the machines that judge it.

use super::gauge::Gauge;
use super::{Config, PathSpec, Port, Session};
use env::CoreHandle;
use paths::health::PathHealth;
use paths::policy::{Selector, Settings, Use};
use paths::stale::Nexus;
use std::rc::Rc;
use units::Now;

/// One path.
pub(super) struct Route {
    pub(super) port: Rc<dyn Port>,
    pub(super) health: PathHealth,
    pub(super) settings: Settings,
    pub(super) session: Option<Rc<dyn Session>>,
    pub(super) nexus: Nexus,
    pub(super) gauge: Gauge,
    /// Operations on this session that have not ended.
    pub(super) open: u32,
    /// When its access state was asked for last.
    pub(super) asked: Option<Now>,
}

impl Route {
    /// A path that has not been tried; its number is the selector's.
    pub(super) fn new(
        core: &CoreHandle,
        config: &Config,
        selector: &mut Selector,
        spec: PathSpec,
    ) -> Self {
        let mut seed = [0; 4];
        core.fill_random(&mut seed);
        let settings = Settings {
            usage: Use::No,
            ..spec.settings
        };
        let number = selector.add(settings);
        Self {
            port: spec.port,
            health: PathHealth::new(config.timing, u32::from_be_bytes(seed)),
            settings,
            session: None,
            open: 0,
            asked: None,
            gauge: Gauge::default(),
            nexus: Nexus {
                path: u32::try_from(number).unwrap_or(u32::MAX),
                session: 0,
            },
        }
    }
}
