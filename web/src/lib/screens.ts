// The one table of screens: address, name, key, icon and count of each. Sidebar, palette, keys, title and the route are
// made of it.

import type { Component } from 'svelte';
import type { Status } from '../api/types.ts';
import type { ListName } from '../live/lists.svelte.ts';
import { total } from './alerts.ts';
import Overview, { LISTS } from '../screens/Overview.svelte';

type Loaded = Promise<{ default: Component }>;

export interface Screen {
  path: string;
  name: string;
  key: string;
  icon: string;
  load?: () => Loaded;
  /** How many there are, for the sidebar; `undefined`: nothing is said. */
  count?: (status: Status) => number | undefined;
  /** It is opened by name only. */
  hidden?: boolean;
}

export const SCREENS: Screen[] = [
  { path: '/', name: 'Overview', key: 'o', icon: 'overview' },
  { path: '/topology', name: 'Topology', key: 't', icon: 'topology', load: () => import('../screens/Topology.svelte') },
  { path: '/luns', name: 'LUNs', key: 'l', icon: 'luns', load: () => import('../screens/Luns.svelte'), count: (status) => status.counts.luns },
  { path: '/hosts', name: 'Hosts', key: 'h', icon: 'hosts', load: () => import('../screens/Hosts.svelte'), count: (status) => status.counts.hosts },
  { path: '/targets', name: 'Targets', key: 'a', icon: 'targets', load: () => import('../screens/Targets.svelte'), count: (status) => status.counts.targets },
  { path: '/pools', name: 'Pools', key: 'p', icon: 'pools', load: () => import('../screens/Pools.svelte'), count: (status) => status.pools.length },
  { path: '/disks', name: 'Disks', key: 'd', icon: 'disks', load: () => import('../screens/Disks.svelte') },
  { path: '/integrity', name: 'Integrity', key: 'i', icon: 'integrity', load: () => import('../screens/Integrity.svelte') },
  { path: '/bench', name: 'Bench', key: 'b', icon: 'bench', load: () => import('../screens/Bench.svelte') },
  { path: '/lab', name: 'Lab', key: 'm', icon: 'lab', load: () => import('../screens/Lab.svelte') },
  { path: '/alerts', name: 'Alerts', key: 'w', icon: 'alerts', load: () => import('../screens/Alerts.svelte'), count: (status) => total(status.alerts) || undefined },
  { path: '/events', name: 'Events', key: 'e', icon: 'events', load: () => import('../screens/Events.svelte') },
  { path: '/audit', name: 'Audit', key: 'u', icon: 'audit', load: () => import('../screens/Audit.svelte') },
  { path: '/jobs', name: 'Jobs', key: 'j', icon: 'jobs', load: () => import('../screens/Jobs.svelte') },
  { path: '/settings', name: 'Settings', key: 's', icon: 'settings', load: () => import('../screens/Settings.svelte') },
  { path: '/first-run', name: 'First steps', key: 'f', icon: 'plus', load: () => import('../screens/FirstRun.svelte'), hidden: true },
];

export const FIRST: Component = Overview;

/** Lists that a page which begins here shows first. */
export function atOnce(path: string): ListName[] {
  return path === '/' ? LISTS : [];
}

/** The screen of an address; `undefined` where there is none. */
export function screenOf(path: string): Screen | undefined {
  if (path === '/') return SCREENS[0];
  return SCREENS.find((screen) => screen.path !== '/' && (path === screen.path || path.startsWith(`${screen.path}/`)));
}
