from memory.learn.keys import *  # temporary
