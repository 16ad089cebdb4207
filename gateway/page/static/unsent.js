// Messages that were not taken yet, kept in this browser for their person alone, so that neither a reload nor a closed
// tab loses one; without files. They go when they are taken or dropped, at the sign-out, and after two weeks.
const kept = (() => {
  const { who, thread } = document.getElementById("log").dataset;
  const all = "remora unsent ";
  const own = `${all}${who} ${thread} `;
  // So many, of so many characters in all, are kept of a person's conversation.
  const MOST = 30, CHARS = 200000, LASTS = 14 * 86400000;
  const names = (start) => Object.keys(localStorage).filter((name) => name.startsWith(start));

  function read(name) {
    try {
      const { text, at } = JSON.parse(localStorage.getItem(name));
      if (typeof text === "string" && text && at > Date.now() - LASTS) return { word: name.slice(own.length), text, at };
    } catch {
      // Nobody but this page writes here.
    }
    localStorage.removeItem(name);
    return null;
  }

  const list = () => names(own).map(read).filter(Boolean).sort((one, other) => one.at - other.at);
  names(all).forEach(read);
  return {
    list,
    // Returns whether it is kept now.
    put(word, text) {
      if (localStorage.getItem(own + word)) return true;
      const before = list();
      if (before.length >= MOST || before.reduce((sum, one) => sum + one.text.length, text.length) > CHARS) return false;
      try {
        localStorage.setItem(own + word, JSON.stringify({ text, at: Date.now() }));
      } catch {
        return false;
      }
      return true;
    },
    drop(word) { localStorage.removeItem(own + word); },
  };
})();
