// The documents of the API as the page reads them, a file for each concept. docs/interface.md promises their members.

export type * from './types/accounts.ts';
export type * from './types/activity.ts';
export type * from './types/alerts.ts';
export type * from './types/bench.ts';
export type * from './types/changes.ts';
export type * from './types/disks.ts';
export type * from './types/hosts.ts';
export type * from './types/jobs.ts';
export type * from './types/lab.ts';
export type * from './types/luns.ts';
export type * from './types/node.ts';
export type * from './types/pools.ts';
export type * from './types/records.ts';
export type * from './types/scrubs.ts';
export type * from './types/settings.ts';
