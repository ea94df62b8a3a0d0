// What stands on the node of the screenshots: some hosts at work, one with a single path, one refused.

import { spawnSync } from 'node:child_process';
import { Browser } from './browser.ts';
import { PORTALS, type Daemon } from './daemon.ts';
import { withDisks, withRuns } from './made_up.ts';
import { enter } from './steps.ts';

/** The names under which the bench and QEMU log in. */
const INITIATORS = { esx01: 'iqn.1998-01.com.vmware:esx01', esx02: 'iqn.1998-01.com.vmware:esx02', web: 'iqn.2026-01.org.debian:web' };

/** Logs in to a page that has disks and runs of the bench as well, which no test's machine has. */
export async function enterWithAll(browser: Browser, daemon: Daemon): Promise<void> {
  await withDisks(browser.page);
  await withRuns(browser.page);
  await enter(browser, daemon.token);
}

/** Starts the node, with all that is made here, and opens its page. */
export async function openFurnished(daemon: Daemon): Promise<Browser> {
  await daemon.start();
  furnish(daemon);
  const browser = await Browser.open(daemon.url);
  await enterWithAll(browser, daemon);
  return browser;
}

export function furnish(daemon: Daemon): void {
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
  daemon.load(INITIATORS.esx01, 11, 2, 'vms', 0, '-o4', '-w30', '-g3000');
  daemon.load(INITIATORS.esx02, 12, 2, 'vms', 2, '-o2', '-w60', '-g2000');
  daemon.load(INITIATORS.web, 21, 1, 'vms', 0, '-o1', '-w10', '-g800');
  refuse(daemon, 'iqn.2026-01.org.debian:unknown');
  daemon.run('scrub', 'start', 'vm01');
  alarm(daemon);
}

/** Two alerts, one of which somebody takes care of. */
function alarm(daemon: Daemon): void {
  daemon.run('alert', 'rule', 'set', 'host_single_path', '--hold', '0');
  daemon.run('alert', 'rule', 'set', 'pool_filling', 'above_percent=2', 'below_percent=1', '--hold', '0');
  daemon.run('alert', 'receiver', 'create', 'pager', '--command', 'pager', '--least', 'critical');
}

/** Somebody whom nobody has allowed. */
export function refuse(daemon: Daemon, initiator: string): void {
  logIn(daemon, 'vms', initiator);
}

/** QEMU's own initiator, under this name: 0 where it was let in. */
export function logIn(daemon: Daemon, target: string, initiator: string): number | null {
  const image = `driver=iscsi,transport=tcp,portal=${PORTALS[0]}:${daemon.port},target=iqn.2026-11.io.causeway:${target},lun=0,initiator-name=${initiator}`;
  return spawnSync('qemu-img', ['info', '--image-opts', image], { timeout: 20_000 }).status;
}
