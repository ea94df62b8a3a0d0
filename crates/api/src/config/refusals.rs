//! What changes of the settings may be refused for.

use crate::plain_change::Refusals;
use manifest::code::Code;

/// What reading again may be refused for.
pub(super) struct OfReloads;

impl Refusals for OfReloads {
    const CODES: &'static [Code] = &[
        Code::BadRequest,
        Code::ConfigSyntax,
        Code::ConfigUnknownKey,
        Code::ConfigValue,
        Code::ConfigNotYet,
        Code::ConfigUnreadable,
        Code::ConfigEnvironment,
        Code::ConfigPlainHttp,
    ];
}

/// What a change of settings may be refused for: the files are read for it as well.
pub(super) struct OfSettings;

impl Refusals for OfSettings {
    const CODES: &'static [Code] = OfReloads::CODES;
    const MORE: &'static [Code] = &[
        Code::SettingsFixed,
        Code::RestartRefused,
        Code::PoolUsed,
        Code::StateNotSaved,
        Code::FirstPassword,
    ];
}

/// What a restart may be refused for.
pub(super) struct OfRestarts;

impl Refusals for OfRestarts {
    const CODES: &'static [Code] = &[Code::BadRequest, Code::RestartRefused];
}
