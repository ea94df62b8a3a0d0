// Every place of the page: what is accessible, fits a phone, is reached by keyboard and greyed while it is stale is asked
// of all of them, and of every dialog (`dialogs.ts`). `furnish` and `made_up` have what they show.

/** Screens, with what they can show. Each of the navigation is among them: `screens.test.ts` says which is not. */
export const SCREENS = [
  '/', '/?span=86400', '/topology', '/topology?session=1', '/topology?as=list', '/topology?lost=pool%3Adefault', '/luns', '/luns/vm01?span=60', '/luns/vm01?show=hosts', '/luns/vm01?show=settings',
  '/luns/vm01?show=connect', '/hosts', '/hosts?view=paths', '/hosts?view=sessions', '/hosts?view=refused', '/hosts/esx01', '/targets', '/targets?view=portals',
  '/targets/vms', '/pools', '/pools?do=add', '/pools/default', '/integrity', '/bench', '/bench/1', '/bench/compare?a=1&b=2', '/lab', '/lab/1', '/jobs', '/jobs/1', '/pools?tray=jobs',
  '/disks', '/disks/ZC10003', '/audit', '/audit?result=done&entry=1', '/alerts', '/alerts/1', '/alerts?show=over', '/alerts?show=silences', '/alerts?show=rules',
  '/alerts?show=receivers', '/events', '/settings/account', '/settings/users', '/settings/tokens', '/settings/certificate', '/settings/name', '/settings/node', '/settings/earlier', '/settings/about',
  ...['password', 'name', 'pool', 'portals', 'share', 'connect', 'done'].map((step) => `/first-run?step=${step}`), '/nothing-here',
];
