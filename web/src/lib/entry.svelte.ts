// That somebody has logged in: what was refused before may be asked again.

class Entry {
  times = $state(0);
}

export const entry = new Entry();
