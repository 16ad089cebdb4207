"""The doors for programs: an OpenAI endpoint, a memory API and a server of tools, over one person's memory each."""
