// Pictures of every screen, at three widths in both themes: web/tests/screenshots.ts docs/img makes those of the book.
// ONLY=lun,topology: these screens; WIDTHS=390: this width; WAIT=5000: milliseconds for the charts to fill.

import { Daemon } from './daemon.ts';
import { EVERY, furnished, take, type Picture } from './pictures.ts';

const listed = (name: string) => process.env[name]?.split(',');
const wanted = (list: readonly string[] | undefined, one: string | number) => list === undefined || list.includes(String(one));
const A_MINUTE = 60_000;

const [dir] = process.argv.slice(2);
if (!dir) throw new Error('usage: screenshots.ts DIRECTORY');
const all: Picture[] = EVERY.filter((one) => wanted(listed('ONLY'), one.name) && wanted(listed('WIDTHS'), one.width));
const daemon = new Daemon(true);
await daemon.start();
try {
  await furnished(daemon);
  await take(daemon, dir, all, { waitMs: Number(process.env['WAIT'] ?? A_MINUTE), benchSeconds: 20, drawnMs: 1_100 });
} finally {
  await daemon.stop();
}
