// Every place of the page: what is accessible, fits a phone, is reached by keyboard and greyed while it is stale is asked
// of all of them. `furnish` and `made_up` have what they show.

/** Screens, with what they can show. Each of the navigation is among them: `screens.test.ts` says which is not. */
export const SCREENS = [
  '/', '/?span=86400', '/topology', '/topology?as=list', '/topology?lost=pool%3Adefault', '/luns', '/luns/vm01?span=60', '/luns/vm01?show=hosts', '/luns/vm01?show=settings',
  '/luns/vm01?show=connect', '/hosts', '/hosts?view=paths', '/hosts?view=sessions', '/hosts?view=refused', '/hosts/esx01', '/targets', '/targets?view=portals',
  '/targets/vms', '/pools', '/pools/default', '/integrity', '/bench', '/bench/1', '/bench/compare?a=1&b=2', '/lab', '/lab/1', '/jobs', '/jobs/1', '/pools?tray=jobs',
  '/disks', '/disks/ZC10003', '/audit', '/audit?result=done&entry=1', '/alerts', '/alerts/1', '/alerts?show=over', '/alerts?show=silences', '/alerts?show=rules',
  '/alerts?show=receivers', '/events', '/settings/account', '/settings/users', '/settings/tokens', '/settings/certificate', '/settings/node', '/settings/about',
  ...['password', 'name', 'pool', 'portals', 'share', 'connect', 'done'].map((step) => `/first-run?step=${step}`), '/nothing-here',
];

/** Dialogs, each over the screen that opens it. */
export const DIALOGS = [
  '/luns?do=create', '/luns/vm01?do=set', '/luns/vm01?do=grow', '/luns/vm01?do=rename', '/luns/vm01?do=grant', '/luns/vm01?do=scrub', '/luns/vm01?do=delete',
  '/hosts?do=add', '/hosts/esx01?do=set', '/hosts/esx01?do=rename', '/hosts/esx01?do=grant', '/hosts/esx01?do=delete', '/targets?do=add', '/targets/vms?do=set',
  '/targets/vms?do=rename', '/targets/vms?do=delete', '/bench?do=run', '/bench/1?do=forget', '/lab/1?do=down', '/disks/ZC10002?do=forget', '/alerts/1?do=ack', '/alerts/1?do=mute',
  '/alerts?show=silences&do=silence', '/alerts?show=rules&rule=pool_filling&do=set', '/alerts?show=rules&rule=pool_filling&do=reset', '/alerts?show=receivers&do=add',
  '/alerts?show=receivers&receiver=pager&do=set', '/alerts?show=receivers&receiver=pager&do=test', '/alerts?show=receivers&receiver=pager&do=remove',
  '/settings/users?do=add', '/settings/tokens?do=make',
];

/** Dialogs of a LUN that was deleted. */
export const OF_DELETED = ['/luns/archive?do=restore', '/luns/archive?do=purge'];

/** Where a topology of the lab is started: its first one is put behind. */
export const LAB_START = '/lab?do=start&topology=';
