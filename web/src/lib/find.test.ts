import { describe, expect, it } from 'vitest';
import { findWithActs, type Entry } from './find.ts';

const entry = (kind: string, name: string): Entry => ({ kind, name, icon: '', href: `/${kind.toLowerCase()}s/${name}` });
const all = [entry('Screen', 'Jobs'), entry('LUN', 'vm01'), entry('LUN', 'vm02'), entry('Host', 'growth'), entry('Deleted LUN', 'old')];
const names = (text: string) => findWithActs(all, text, 12).map((one) => one.name);

describe('the search', () => {
  it('has the object first, and below it what can be done with it', () => {
    expect(names('vm01')).toEqual(['vm01', 'Grow vm01', 'Grant vm01', 'Settings of vm01', 'Rename vm01', 'Scrub vm01', 'Delete vm01']);
    expect(findWithActs(all, 'vm01', 12)[1]?.href).toBe('/luns/vm01?do=grow');
  });
  it('does not find each sentence that has the letters somewhere', () => {
    const alert = entry('Alert', 'Host web has one path to target vms: from 127.0.1.21 to portal 127.0.1.1:43823.');
    expect(findWithActs([alert], 'vm01', 12)).toEqual([]);
    expect(findWithActs([alert], 'one path', 12)).toEqual([alert]);
  });
  it('finds an act by its verb and the name', () => {
    expect(names('grow vm02')[0]).toBe('Grow vm02');
    expect(names('ren growth')[0]).toBe('Rename growth');
    expect(names('restore old')[0]).toBe('Restore old');
    // Screens have no acts, and nothing is offered for no name.
    expect(names('jobs')).toEqual(['Jobs']);
    expect(names('')).toEqual(all.map((one) => one.name));
  });
});
