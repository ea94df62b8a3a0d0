import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAY } from './account_changes.ts';
import { addPool } from './config_changes.ts';

const ROOT = join(import.meta.dirname, '../../..');
const ACCESS = readFileSync(join(ROOT, 'crates/api/src/access.rs'), 'utf8');
const GUIDE = readFileSync(join(ROOT, 'docs/operate/users.md'), 'utf8');
const row = (role: string) => GUIDE.split('\n').find((line) => line.startsWith(`| ${role} |`)) ?? '';
/** The words of a list in the daemon's rules. */
const words = (found: RegExp) => [...(found.exec(ACCESS)?.[1] ?? '').matchAll(/"([a-z/]+)"/g)].map(([, word = '']) => word.split('/').at(-1) ?? '');

describe('what a role may do', () => {
  it('names all that only admins see, as the daemon has it', () => {
    // No address is called settings: the keys of node.toml are at /config, and whoever has logged in reads them.
    const kept = [...words(/\bOF_ADMINS: &\[&str\] = &\[([^\]]+)\]/), ...words(/BELOW_OF_ADMINS: &\[&str\] = &\[([^\]]+)\]/)].filter((word) => word !== 'settings');
    expect(kept).toEqual(expect.arrayContaining(['users', 'audit', 'support', 'receivers']));
    for (const word of kept) {
      expect(MAY.viewer).toContain(word);
      expect(row('viewer')).toContain(word);
    }
  });
  it('gives pools to admins, as the daemon gives the address by which one is added', () => {
    expect(words(/\(false, ([^)]+)\) => of_role\(Role::Admin/)).toContain(addPool({ name: 'a', path: '/a', journal: '', size: '' }).path);
    for (const operator of [MAY.operator, row('operator')]) expect(operator.replace(/journals\s+of\s+pools/, '')).not.toMatch(/pools/);
    expect(MAY.admin).toContain('pools');
    for (const operator of [MAY.operator, row('operator')]) expect(operator).toContain('alerts and their rules');
  });
});
