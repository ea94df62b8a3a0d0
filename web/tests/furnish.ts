// What stands on the node of the screenshots: some hosts at work, one with a single path, one refused.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.ts';
import { PORTALS, type Daemon } from './daemon.ts';
import { withDisks, withRuns } from './made_up.ts';
import { LATE_MS, PATIENCE_MS } from './patience.ts';
import { SCREENS } from './places.ts';
import { logInAs, until } from './steps.ts';

/** The names under which the bench and QEMU log in. */
const INITIATORS = { esx01: 'iqn.1998-01.com.vmware:esx01', esx02: 'iqn.1998-01.com.vmware:esx02', web: 'iqn.2026-01.org.debian:web' };

/** A host whose paths cross, in the pictures. */
export const LAB = 'iqn.2026-01.org.debian:lab';

/** Logs in to a page that has disks and runs of the bench as well, which no test's machine has. */
export async function enterWithAll(browser: Browser, daemon: Daemon): Promise<void> {
  await withDisks(browser.page);
  await withRuns(browser.page);
  await logInAs(browser, 'anna', daemon.password);
}

/** Starts the node, with all that is made here, and opens its page. */
export async function openFurnished(daemon: Daemon): Promise<Browser> {
  await daemon.start();
  furnish(daemon);
  const browser = await Browser.open(daemon.url);
  await enterWithAll(browser, daemon);
  return browser;
}

/** Somebody who may do everything, with the daemon's password. */
export function makeAnna(daemon: Daemon): void {
  const password = join(daemon.dir, 'password');
  writeFileSync(password, daemon.password);
  daemon.run('user', 'create', 'anna', '--role', 'admin', '--password-file', password);
}

/** `straight`: no host reaches a network from the other one. */
export function furnish(daemon: Daemon, straight = false): void {
  makeAnna(daemon);
  for (const [name, iqn] of Object.entries(INITIATORS)) daemon.run('host', 'create', name, '--iqn', iqn);
  daemon.run('host', 'create', 'backup', '--iqn', 'iqn.1991-05.com.microsoft:backup.example.com');
  const share = (name: string, size: string, hosts: string, ...options: string[]) =>
    daemon.run('share', 'create', name, '--size', size, '--target', 'vms', '--for', hosts, ...options);
  share('vm01', '512M', 'esx01,esx02', '--integrity', 'true');
  share('vm02', '1G', 'esx01,esx02');
  share('database', '2G', 'esx02', '--limit-iops', '20000');
  share('www', '256M', 'web');
  share('archive', '4G', 'backup');
  daemon.run('lun', 'create', 'scratch', '--size', '128M', '--backend', 'memory');
  // Enough to be seen, and not all that the machine has: the browser needs some.
  const load = (host: keyof typeof INITIATORS, number: number, lun: number, ...options: string[]) =>
    straight ? daemon.loadStraight(INITIATORS[host], number, 'vms', lun, ...options) : daemon.load(INITIATORS[host], number, 2, 'vms', lun, ...options);
  load('esx01', 11, 0, '-o4', '-w30', straight ? '-g1500' : '-g3000');
  load('esx02', 12, 2, '-o2', '-w60', straight ? '-g1000' : '-g2000');
  daemon.load(INITIATORS.web, 21, 1, 'vms', 0, '-o1', '-w10', '-g800');
  refuse(daemon, 'iqn.2026-01.org.debian:unknown');
  daemon.run('scrub', 'start', 'vm01');
  alarm(daemon);
}

/** The number of an alert that fires: rules are looked at from time to time. */
export async function firing(daemon: Daemon): Promise<string> {
  const alerts = () => JSON.parse(daemon.run('alert', 'ls', '-o', 'json')) as { id: number }[];
  await until('an alert fires', () => alerts().length > 0, LATE_MS);
  return String(alerts()[0]?.id);
}

/** The screens with numbers that this daemon has. */
export async function placesOf(daemon: Daemon): Promise<string[]> {
  const alert = await firing(daemon);
  return SCREENS.map((path) => path.replace('/alerts/1', `/alerts/${alert}`));
}

/** A host with a single path is an alert at once. */
function alarm(daemon: Daemon): void {
  daemon.run('alert', 'rule', 'set', 'host_single_path', '--hold', '0');
  daemon.run('alert', 'receiver', 'create', 'pager', '--command', 'pager', '--least', 'critical');
}

/** Somebody whom nobody has allowed. */
export function refuse(daemon: Daemon, initiator: string): void {
  logIn(daemon, 'vms', initiator);
}

/** QEMU's own initiator, under this name: 0 where it was let in. */
export function logIn(daemon: Daemon, target: string, initiator: string): number | null {
  const image = `driver=iscsi,transport=tcp,portal=${PORTALS[0]}:${daemon.port},target=iqn.2026-11.io.causeway:${target},lun=0,initiator-name=${initiator}`;
  return spawnSync('qemu-img', ['info', '--image-opts', image], { timeout: PATIENCE_MS }).status;
}
