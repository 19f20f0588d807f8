"""Does an engine fit its device, and does its draft go with its target?"""
